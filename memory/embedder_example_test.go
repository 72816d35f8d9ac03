package memory_test

import (
	"fmt"

	"github.com/ragpilot/ragpilot/memory"
)

func ExampleEmbedderSetting_Check() {
	for _, value := range []string{"minilm", "http://127.0.0.1:8080", "bert"} {
		if err := (memory.EmbedderSetting{Value: value}).Check(); err != nil {
			fmt.Printf("%s: %v\n", value, err)
			continue
		}
		fmt.Printf("%s: ok\n", value)
	}
	// Output:
	// minilm: ok
	// http://127.0.0.1:8080: ok
	// bert: want auto, minilm, minilm:DIR, lexical, or the http or https URL of a server
}
