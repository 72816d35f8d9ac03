package bounds_test

import (
	"context"
	"fmt"

	"github.com/ragpilot/ragpilot/internal/lab/bounds"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// The third request has two documents in common with each of the others, but its prompt can continue only one of them.
func Example() {
	p := bounds.New(nil, true) // each document weighs 1
	for i, docs := range [][]string{{"a", "b"}, {"c", "d"}, {"a", "b", "c", "d"}} {
		id := fmt.Sprint(i)
		if err := p.Add(trace.Request{ID: id, Session: id, Turn: 1, Docs: docs}); err != nil {
			fmt.Println(err)
			return
		}
	}
	ctx := context.Background()
	nearest, _ := p.Nearest(ctx)
	tree, _ := p.SpanningTree(ctx)
	fmt.Printf("nearest %.3f, spanning tree %.3f\n", p.Share(nearest), p.Share(tree))
	// Output: nearest 0.250, spanning tree 0.500
}
