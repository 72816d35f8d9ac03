// Command write writes the bodies of all cases, and what is expected of them, into a folder.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/ragpilot/ragpilot/ci/clients"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./cmd/write DIR")
		os.Exit(2)
	}
	if err := clients.Write(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
