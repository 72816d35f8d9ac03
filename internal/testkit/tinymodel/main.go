// Command tinymodel writes the small random model of package engines/local/localtest, for scripts that need one.
//
//	go run ./internal/testkit/tinymodel FILE
package main

import (
	"fmt"
	"os"

	"github.com/ragpilot/ragpilot/engines/local/localtest"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: tinymodel FILE")
		os.Exit(2)
	}
	if err := localtest.WriteModel(os.Args[1], 1); err != nil {
		fmt.Fprintln(os.Stderr, "tinymodel:", err)
		os.Exit(1)
	}
}
