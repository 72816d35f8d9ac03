package store

import (
	"cmp"
	"slices"
	"strings"
)

// Sort puts hits into the order in which [Searcher] gives them: by score, the best first, then by ID. Servers break
// ties as they are stored, so that the same question would give another prompt after each rebuild of the index.
func Sort(hits []Hit) {
	slices.SortFunc(hits, func(a, b Hit) int {
		if c := cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID)); c != 0 {
			return c
		}
		return strings.Compare(a.Text, b.Text) // several indexes behind one name can know one ID
	})
}
