package model_test

import (
	"fmt"

	"github.com/ragpilot/ragpilot/engines/local/model"
)

func Example() {
	for _, m := range model.Models() {
		fmt.Println(m.Name, m.File, m.License)
	}
	// model.Find reports whether it has been pulled; model.Pull fetches it.
	if _, ok := model.Find("no-such-model"); !ok {
		fmt.Println("not here")
	}
	// Output:
	// smollm2 SmolLM2-135M-Instruct.Q4_1.gguf Apache-2.0
	// not here
}
