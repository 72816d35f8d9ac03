package sqlite_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		child(path) // until it is killed
		return
	}
	goleak.VerifyTestMain(m)
}
