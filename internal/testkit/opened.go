package testkit

import (
	"io"
	"testing"
)

// Opened takes what a function that opens something returned, as in Opened[*os.File](t)(os.Open(name)). It ends the test at an
// error, and closes what was opened with the test.
func Opened[T io.Closer](t testing.TB) func(T, error) T {
	t.Helper()
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		})
		return x
	}
}

// Map returns what f makes of each element.
func Map[T, R any](in []T, f func(T) R) []R {
	out := make([]R, len(in))
	for i, x := range in {
		out[i] = f(x)
	}
	return out
}

// Must takes what a function returned, as in Must(os.ReadFile(name))(t). It ends the test at an error.
func Must[T any](x T, err error) func(t Fataler) T {
	return func(t Fataler) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// Fataler is a test, also one of package rapid.
type Fataler interface {
	Helper()
	Fatal(args ...any)
}
