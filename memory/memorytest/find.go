package memorytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/memory"
)

func checkSearchRanks(b *bench) {
	b.add(user("ana"), "Ana is allergic to peanuts.", "Ana plays the violin in an orchestra.", "The office is in Bergen.",
		"Ana takes the train to work.", "Peanuts are on sale this week.")
	for query, want := range map[string]string{
		"what is Ana allergic to?":        "Ana is allergic to peanuts.",
		"violin orchestra":                "Ana plays the violin in an orchestra.",
		"where is the office":             "The office is in Bergen.",
		"does she take a train to work":   "Ana takes the train to work.",
		"sale on peanuts during the week": "Peanuts are on sale this week.",
	} {
		hits, err := b.store.Search(b.ctx, user("ana"), query, 3, memory.SearchOptions{})
		b.must(err)
		if len(hits) == 0 || hits[0].Memory.Text != want {
			b.Errorf("%q finds %q first, want %q", query, found(hits), want)
		}
		for i, h := range hits {
			if h.Score <= 0 || h.Score > 1 || i > 0 && h.Score > hits[i-1].Score {
				b.Errorf("%q: score %v at place %d", query, h.Score, i)
			}
		}
	}
}

func checkSearchBounds(b *bench) {
	for i := range 30 {
		b.add(user("ana"), fmt.Sprintf("Fact number %d about tea", i))
	}
	for k, want := range map[int]int{1: 1, 7: 7, 0: memory.DefaultK, -3: memory.DefaultK, 1000: 30} {
		hits, err := b.store.Search(b.ctx, user("ana"), "number about tea", k, memory.SearchOptions{Threshold: -1})
		if err != nil || len(hits) != want {
			b.Errorf("k = %d gives %d hits, %v; want %d", k, len(hits), err, want)
		}
	}
	for _, query := range []string{"", " \n"} {
		if hits, err := b.store.Search(b.ctx, user("ana"), query, 5, memory.SearchOptions{}); err != nil || len(hits) != 0 {
			b.Errorf("query %q = %v, %v", query, hits, err)
		}
	}
	hits, err := b.store.Search(b.ctx, user("ana"), "number about tea and zebras", 100, memory.SearchOptions{Threshold: 0.999})
	if err != nil || len(hits) != 0 {
		b.Errorf("a threshold that nothing reaches: %q, %v", found(hits), err)
	}
	long := strings.Repeat("tea fact number about ", 2000)
	if hits, err := b.store.Search(b.ctx, user("ana"), long, 5, memory.SearchOptions{}); err != nil || len(hits) != 5 {
		b.Errorf("a query of %d bytes = %d hits, %v", len(long), len(hits), err)
	}
	var many strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&many, "word%d ", i)
	}
	if _, err := b.store.Search(b.ctx, user("ana"), many.String()+"tea", 5, memory.SearchOptions{}); err != nil {
		b.Errorf("a query of 3000 words: %v", err)
	}
}

// checkSearchEquals: texts of the same score come the newest first.
func checkSearchEquals(b *bench) {
	for _, run := range []string{"1", "2", "3"} {
		b.add(memory.Scope{User: "ana", Run: run}, "Likes tea.")
	}
	for range 3 {
		hits := b.search(user("ana"), "tea", memory.SearchOptions{})
		runs := make([]string, 0, len(hits))
		for _, h := range hits {
			runs = append(runs, h.Memory.Scope.Run)
		}
		if !slices.Equal(runs, []string{"3", "2", "1"}) {
			b.Fatalf("order %q, want the newest first", runs)
		}
	}
}

// checkSearchIgnoresOthers: what other scopes hold changes neither order nor scores.
func checkSearchIgnoresOthers(b *bench) {
	b.add(user("ana"), "Likes green tea.", "Likes black coffee.", "Drinks tea at five.")
	before := b.search(user("ana"), "green tea", memory.SearchOptions{})
	for i := range 20 {
		b.add(user("bo"), fmt.Sprintf("green green green tea %d", i))
	}
	b.equal("hits", before, b.search(user("ana"), "green tea", memory.SearchOptions{}))
}

// filterCases are filters in Mem0's form and the texts that they select.
var filterCases = []struct{ filter, want string }{
	{`{}`, "apple bread cake dates"},
	{`{"kind": "food"}`, "apple bread"},
	{`{"kind": {"eq": "food"}}`, "apple bread"},
	{`{"kind": {"ne": "food"}}`, "cake dates"},
	{`{"n": {"in": [1, 3]}}`, "apple cake"},
	{`{"n": {"nin": [1, 3]}}`, "bread dates"},
	{`{"n": {"gt": 1, "lte": 3}}`, "bread cake"},
	{`{"n": {"gte": 2}}`, "bread cake"},
	{`{"n": {"lt": 2}}`, "apple"},
	{`{"n": {"lt": "2"}}`, ""},
	{`{"tags": {"contains": "Red"}}`, "apple"},
	{`{"tags": {"icontains": "red"}}`, "apple cake"},
	{`{"text": {"contains": "a"}}`, "apple bread cake dates"},
	{`{"text": {"icontains": "READ"}}`, "bread"},
	{`{"n": "*"}`, "apple bread cake"},
	{`{"nothing": "*"}`, ""},
	{`{"day": {"gte": "2026-01-02"}}`, "bread cake"},
	{`{"day": {"lt": "2026-01-02T00:00:00Z"}}`, "apple"},
	{`{"created_at": {"lt": "2026-03-01T12:30:00Z"}}`, "apple bread"},
	{`{"created_at": {"gte": "2026-03-01T15:30:00+03:00"}}`, "cake dates"},
	{`{"run_id": "*"}`, "dates"},
	{`{"run_id": "7"}`, "dates"},
	{`{"AND": [{"kind": "food"}, {"n": 2}]}`, "bread"},
	{`{"kind": "food", "n": 2}`, "bread"},
	{`{"OR": [{"n": 1}, {"n": 3}]}`, "apple cake"},
	{`{"NOT": [{"n": 1}, {"kind": "sweet"}]}`, "bread dates"},
	{`{"AND": [{"OR": [{"n": 1}, {"n": 2}]}, {"NOT": [{"tags": {"contains": "Red"}}]}]}`, "bread"},
	{`{"OR": []}`, ""},
	{`{"AND": []}`, "apple bread cake dates"},
	{`{"on": true}`, "cake"},
}

func checkFilters(b *bench) {
	put := func(scope memory.Scope, text string, metadata map[string]any) {
		b.addWith(scope, memory.AddOptions{Metadata: metadata}, text)
	}
	put(user("ana"), "apple", map[string]any{"kind": "food", "n": 1, "tags": []string{"Red", "round"}, "day": "2026-01-01"})
	put(user("ana"), "bread", map[string]any{"kind": "food", "n": 2, "day": "2026-01-02T10:00:00Z"})
	b.clock.advance(time.Hour)
	put(user("ana"), "cake", map[string]any{"kind": "sweet", "n": 3, "tags": []any{"red"}, "day": "2026-01-03", "on": true})
	put(memory.Scope{User: "ana", Run: "7"}, "dates", nil)
	for _, c := range filterCases {
		var filter memory.Filter
		if err := json.Unmarshal([]byte(c.filter), &filter); err != nil {
			b.Errorf("%s: %v", c.filter, err)
			continue
		}
		all, err := b.store.GetAll(b.ctx, user("ana"), memory.ListOptions{Filter: filter})
		if err != nil {
			b.Errorf("%s: %v", c.filter, err)
			continue
		}
		if got := strings.Join(texts(all), " "); got != c.want {
			b.Errorf("GetAll %s selects %q, want %q", c.filter, got, c.want)
		}
		hits := found(b.search(user("ana"), "apple bread cake dates", memory.SearchOptions{Filter: filter}))
		slices.Sort(hits)
		if got := strings.Join(hits, " "); got != c.want {
			b.Errorf("Search %s selects %q, want %q", c.filter, got, c.want)
		}
	}
	limited, err := b.store.GetAll(b.ctx, user("ana"), memory.ListOptions{Limit: 2, Filter: memory.Where("n", memory.OpGte, 2)})
	if err != nil || !slices.Equal(texts(limited), []string{"bread", "cake"}) {
		b.Errorf("limited: %q, %v", texts(limited), err)
	}
}

func checkBadFilters(b *bench) {
	b.add(user("ana"), "apple")
	for name, filter := range map[string]memory.Filter{
		"unknown operator":   memory.Where("n", "about", 1),
		"no field":           memory.Eq("", 1),
		"in without a list":  memory.Where("n", memory.OpIn, 1),
		"order of a boolean": memory.Where("n", memory.OpGt, true),
		"nested":             memory.And(memory.Or(memory.Where("n", "about", 1))),
		"not JSON":           memory.Eq("n", func() {}),
	} {
		if _, err := b.store.Search(b.ctx, user("ana"), "apple", 1, memory.SearchOptions{Filter: filter}); !errors.Is(err, memory.ErrBadFilter) {
			b.Errorf("Search, %s: %v, want ErrBadFilter", name, err)
		}
		if _, err := b.store.GetAll(b.ctx, user("ana"), memory.ListOptions{Filter: filter}); !errors.Is(err, memory.ErrBadFilter) {
			b.Errorf("GetAll, %s: %v, want ErrBadFilter", name, err)
		}
	}
}

func checkOwnership(b *bench) {
	metadata := map[string]any{"list": []any{"a"}, "deep": map[string]any{"x": "y"}}
	id := b.addWith(user("ana"), memory.AddOptions{Metadata: metadata}, "apple")[0]
	spoil := func(m memory.Memory) {
		m.Metadata["list"].([]any)[0] = "spoilt"
		m.Metadata["deep"].(map[string]any)["x"] = "spoilt"
		m.Metadata["new"] = "spoilt"
	}
	metadata["new"] = "spoilt"
	metadata["deep"].(map[string]any)["x"] = "spoilt"
	spoil(b.get(id))
	spoil(b.all(user("ana"))[0])
	spoil(b.search(user("ana"), "apple", memory.SearchOptions{})[0].Memory)
	want := map[string]any{"list": []any{"a"}, "deep": map[string]any{"x": "y"}}
	b.equal("the result", want, b.get(id).Metadata)
}

func checkCancelled(b *bench) {
	id := b.add(user("ana"), "apple")[0]
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	_, add := b.store.Add(ctx, user("ana"), said("bread"), memory.AddOptions{})
	_, search := b.store.Search(ctx, user("ana"), "apple", 1, memory.SearchOptions{})
	_, all := b.store.GetAll(ctx, user("ana"), memory.ListOptions{})
	for name, err := range map[string]error{
		"Add": add, "Search": search, "GetAll": all, "Delete": b.store.Delete(ctx, id, memory.DeleteOptions{}),
	} {
		if !errors.Is(err, context.Canceled) {
			b.Errorf("%s with an ended context = %v", name, err)
		}
	}
	b.equal("texts", []string{"apple"}, texts(b.all(user("ana"))))
}

func checkReset(b *bench) {
	id := b.add(user("ana"), "apple")[0]
	b.must(b.store.Reset(b.ctx))
	if n := len(b.all(user("ana"))); n != 0 {
		b.Errorf("%d memories after Reset", n)
	}
	b.fails("History after Reset", errorOf(b.store.History(b.ctx, id)), memory.ErrNotFound)
	if ids := b.add(user("ana"), "apple"); len(ids) != 1 {
		b.Errorf("Add after Reset stores %d", len(ids))
	}
	if hits := b.search(user("ana"), "apple", memory.SearchOptions{}); len(hits) != 1 {
		b.Errorf("%d found after Reset and Add", len(hits))
	}
}

func checkClosed(b *bench) {
	b.add(user("ana"), "apple")
	b.must(b.store.Close())
	_, add := b.store.Add(b.ctx, user("ana"), said("bread"), memory.AddOptions{})
	_, all := b.store.GetAll(b.ctx, user("ana"), memory.ListOptions{})
	if add == nil || all == nil {
		b.Errorf("after Close, Add = %v, GetAll = %v", add, all)
	}
	if err := b.store.Close(); err != nil {
		b.Errorf("Close again = %v", err)
	}
}
