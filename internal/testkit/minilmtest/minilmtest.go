// Package minilmtest finds the sentence model for tests that need the real one.
package minilmtest

import (
	"os"
	"testing"

	"github.com/ragpilot/ragpilot/embed/minilm"
)

// Folder returns the folder of the model, or skips the test where it is not. ".ci/run minilm" fetches it and fails if a test skips.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.Getenv(minilm.FolderVariable), error(nil)
	if dir == "" {
		if dir, err = minilm.DefaultDir(); err != nil {
			t.Skip("needs the sentence model: ", err)
		}
	}
	if !minilm.Has(dir) {
		t.Skip("needs the sentence model, 83 MB: RAGPILOT_MINILM names its folder, and \"ragpilot model pull minilm\" fetches it")
	}
	return dir
}

// Open returns the model, or skips the test where it is not.
func Open(t testing.TB) *minilm.Model {
	t.Helper()
	model, err := minilm.Open(Folder(t))
	if err != nil {
		t.Fatal(err)
	}
	return model
}
