package offline_test

import (
	"context"
	"fmt"

	"github.com/ragpilot/ragpilot/internal/prompt/offline"
)

// Four requests of blocks 0 to 4, in the order retrieved. The first three share block 2, two of them also block 0.
func Example() {
	sets := [][]int32{{0, 1, 2}, {2, 3}, {4, 2, 0}, {3, 1}}
	weight := []int32{200, 100, 300, 150, 50}
	r, err := offline.Plan(context.Background(), sets, weight, offline.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range r.Schedule {
		fmt.Print("request ", i, ":")
		for _, at := range r.Orders[i] {
			fmt.Print(" ", sets[i][at])
		}
		fmt.Println()
	}
	fmt.Println("groups", r.Groups, "saved", r.Saved)
	// Output:
	// request 0: 2 0 1
	// request 2: 2 0 4
	// request 1: 2 3
	// request 3: 3 1
	// groups [[0 2 1] [3]] saved 800
}
