package sqlite_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		child(path) // until it is killed
		return
	}
	if path := os.Getenv(reembedFile); path != "" {
		if err := reembedChild(path); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
