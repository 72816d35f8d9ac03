package prefixdiff_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/prefixdiff"
)

func TestRecent(t *testing.T) {
	r := prefixdiff.NewRecent(3)
	for i := range 5 {
		r.Add(t.Context(), prefixdiff.Finding{Number: i})
		last, total := r.Last()
		if total != i+1 || len(last) != min(i+1, 3) || last[len(last)-1].Number != i || last[0].Number != max(i-2, 0) {
			t.Errorf("after %d: %d, %+v", i, total, last)
		}
	}
}
