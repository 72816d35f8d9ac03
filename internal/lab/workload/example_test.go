package workload_test

import (
	"fmt"

	"github.com/ragpilot/ragpilot/internal/lab/workload"
)

func ExampleGenerate() {
	requests, blocks, err := workload.Generate(workload.Options{Seed: 1, Contexts: 3, K: 4, Pool: 20, BlockTokens: 8, Zipf: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range requests {
		fmt.Println(q.ID, q.Docs)
	}
	text, _ := blocks.Text(requests[0].Docs[0])
	fmt.Println(blocks.Len(), "blocks, one of them:", text)
	// Output:
	// r0 [b9 b0 b13 b10]
	// r1 [b12 b9 b14 b13]
	// r2 [b19 b16 b8 b1]
	// 20 blocks, one of them: Rol ju disjam hemsemhe hi fu kewasru fahovos.
}

func ExampleNamed() {
	opt, err := workload.Named("ragcachepp")
	if err != nil {
		fmt.Println(err)
		return
	}
	opt.Contexts = 2
	requests, _, err := workload.Generate(opt)
	fmt.Println(requests[0].Docs, requests[1].Docs, err)
	// Output:
	// [b0 b329 b232 b276 b21] [b0 b329 b232 b384 b21] <nil>
}

func ExampleOptionError() {
	_, err := workload.New(workload.Options{Pool: 10})
	fmt.Println(err)
	// Output: pool 10: fewer blocks than the k 15 of one request
}
