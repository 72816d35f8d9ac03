package testkit

import (
	"os"
	"testing"
)

// Golden returns what a golden file says. With update it first writes there what the test got.
func Golden(t testing.TB, update bool, path, got string) (want string) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return string(Must(os.ReadFile(path))(t))
}
