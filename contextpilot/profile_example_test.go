package contextpilot_test

import (
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// A profile that an evaluation wrote, over a configuration of the program's own.
func ExampleReadProfile() {
	profile, err := contextpilot.ReadProfile(strings.NewReader(`{"name": "ours", "pin": 1, "hint": "top-2"}`))
	if err != nil {
		panic(err)
	}
	config, err := profile.Apply(contextpilot.Config{BlockSize: 32})
	if err != nil {
		panic(err)
	}
	fmt.Println(config.Limits.Pin, config.Notes.Top, config.BlockSize)
	// Output: 1 2 32
}
