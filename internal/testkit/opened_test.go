package testkit_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// ended is a fake test that notes why it ended.
type ended struct{ why string }

func (*ended) Helper() {}

func (e *ended) Fatal(args ...any) { e.why = fmt.Sprint(args...) }

// An error ends the test; a value alone does not.
func TestMust(t *testing.T) {
	for _, err := range []error{nil, errors.New("broken")} {
		var e ended
		got := testkit.Must(7, err)(&e)
		if want := fmt.Sprint(err); got != 7 || (err != nil) != (e.why == want) {
			t.Errorf("%v: %d, ended by %q", err, got, e.why)
		}
	}
}
