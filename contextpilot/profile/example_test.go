package profile_test

import (
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/profile"
)

// A profile that an evaluation wrote, over a configuration of the program's own.
func ExampleRead() {
	ours, err := profile.Read(strings.NewReader(`{"name": "ours", "pin": 1, "hint": "top-2"}`))
	if err != nil {
		panic(err)
	}
	config, err := ours.Apply(contextpilot.Config{BlockSize: 32})
	if err != nil {
		panic(err)
	}
	fmt.Println(config.Limits.Pin, config.Notes.Top, config.BlockSize)
	// Output: 1 2 32
}
