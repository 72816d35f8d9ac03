package recorded

import "fmt"

// Names calls docs as fmt prints them.
func Names[D any](docs []D) func(i int) string {
	return func(i int) string { return fmt.Sprint(docs[i]) }
}

// Evict removes requests by ID and returns how many had a context.
func (x *Index) Evict(ids ...string) (removed int) {
	for _, id := range ids {
		if x.Remove(id).Held {
			removed++
		}
	}
	return removed
}
