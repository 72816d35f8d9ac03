package residency_test

import (
	"fmt"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
)

// Two requests share their first block; the engine evicts from the end.
func Example() {
	index := residency.New(residency.Config{OnUpdate: func(updates []residency.Update) {
		for _, u := range updates {
			fmt.Println(u.RequestID, u.Resident, u.Lost)
		}
	}})
	index.Register("ana-1", []int{1, 2, 3, 4}, residency.Key{})
	index.Register("ben-1", []int{1, 2, 7, 8}, residency.Key{})

	name := kvevents.Uint // engines name blocks by numbers
	index.Apply(&kvevents.Batch{Events: []kvevents.Event{
		{Kind: kvevents.Stored, Hashes: []kvevents.Hash{name(11), name(12)}, Tokens: []int{1, 2, 3, 4}, BlockSize: 2},
		{Kind: kvevents.Stored, Hashes: []kvevents.Hash{name(13)}, Parent: name(11), Tokens: []int{7, 8}, BlockSize: 2},
	}})
	index.Served("ana-1")
	index.Served("ben-1")
	fmt.Println(index.Prefix([]int{1, 2, 7, 8, 9, 9}, residency.Key{}), "tokens of a longer prompt are there")

	index.Apply(&kvevents.Batch{Events: []kvevents.Event{{Kind: kvevents.Removed, Hashes: []kvevents.Hash{name(12)}}}})
	index.Apply(&kvevents.Batch{Events: []kvevents.Event{{Kind: kvevents.Removed, Hashes: []kvevents.Hash{name(13), name(11)}}}})
	// Output:
	// 4 tokens of a longer prompt are there
	// ana-1 2 false
	// ben-1 0 true
	// ana-1 0 true
}
