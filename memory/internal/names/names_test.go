package names_test

import (
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/memory/internal/names"
)

func TestRoundTrip(t *testing.T) {
	for _, list := range [][]string{nil, {"oslo"}, {"ana maria", "oslo", "日本"}} {
		if got := names.Split(names.Join(list)); !slices.Equal(got, list) || (got == nil) != (list == nil) {
			t.Errorf("%q became %q", list, got)
		}
	}
}
