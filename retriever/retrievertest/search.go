package retrievertest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// animals all hold the word "animal", and each a word of its own.
func animals() []store.Document {
	return []store.Document{
		doc("otter", "The otter is an animal that swims in rivers."),
		doc("eagle", "The eagle is an animal that nests on cliffs."),
		doc("mole", "The mole is an animal that digs tunnels."),
		doc("camel", "The camel is an animal that crosses deserts."),
		doc("salmon", "The salmon is an animal that leaps up waterfalls."),
	}
}

// shelf makes n documents of one text, in an order that is not that of their IDs.
func shelf(n int) (docs []store.Document, sorted []string) {
	for i := range n {
		id := fmt.Sprintf("copy-%05d", (i*7919)%n) // 7919 is a prime
		docs = append(docs, doc(id, "A copy of the same page."))
		sorted = append(sorted, id)
	}
	slices.Sort(sorted)
	return docs, sorted
}

func checkEmpty(t *testing.T, s Subject) {
	x := s.New(t)
	if hits := ask(t, x, "otter", 5); len(hits) != 0 {
		t.Errorf("an empty store found %q", ids(hits))
	}
	upsert(t, x) // nothing
}

func checkBestFirst(t *testing.T, s Subject) {
	x := s.filled(t, animals()...)
	for _, d := range animals() {
		hits := ask(t, x, d.ID, 3)
		if len(hits) == 0 || hits[0].ID != d.ID || hits[0].Text != d.Text {
			t.Errorf("query %q found %q, want that document first", d.ID, ids(hits))
		}
	}
}

func checkBadQueries(t *testing.T, s Subject) {
	x := s.filled(t, animals()...)
	for name, q := range map[string]store.Query{
		"no text":        {K: 1},
		"white space":    {Text: " \n\t", K: 1},
		"K is 0":         {Text: "otter"},
		"K is negative":  {Text: "otter", K: -1},
		"empty key":      {Text: "otter", K: 1, Filter: store.Eq("", "a")},
		"no values":      {Text: "otter", K: 1, Filter: store.In("lang")},
		"value of a map": {Text: "otter", K: 1, Filter: store.Eq("lang", map[string]any{})},
		"empty range":    {Text: "otter", K: 1, Filter: store.Between("year", 2, 1)},
		"range of NaN":   {Text: "otter", K: 1, Filter: store.Between("year", math.NaN(), 1)},
	} {
		hits, err := x.Search(within(t), q)
		if !errors.Is(err, store.ErrBadQuery) || hits != nil {
			t.Errorf("%s: hits %v, error %v, want ErrBadQuery alone", name, hits, err)
		}
	}
}

// checkPlainText: what means something in query languages means nothing here.
func checkPlainText(t *testing.T, s Subject) {
	x := s.filled(t, animals()...)
	for _, text := range []string{
		`otter`, `OTTER`, `+otter`, `-otter`, `text: otter`, `otter^5`, `"otter`, `otter AND`, `(otter`, `otter:`, `\otter`,
		`{"match": "otter"}`, `otter'; --`, "otter\x00", "otter\n", `otter?`, `🦦 otter`, `otter*? /[/`,
	} {
		if hits := ask(t, x, text, 1); len(hits) != 1 || hits[0].ID != "otter" {
			t.Errorf("query %q found %q, want otter", text, ids(hits))
		}
	}
}

// checkTies: documents that score equally stand in the order of their IDs, at the cut as well.
func checkTies(t *testing.T, s Subject) {
	docs, sorted := shelf(60)
	x := s.filled(t, docs...)
	for _, k := range []int{1, 3, 16, 17, 59, 60} {
		hits := ask(t, x, "copy of the page", k)
		if s.FusesRanks {
			if again := ask(t, x, "copy of the page", k); len(hits) != k || !slices.Equal(ids(hits), ids(again)) {
				t.Errorf("K = %d: first %q, then %q", k, ids(hits), ids(again))
			}
			continue
		}
		if diff := cmp.Diff(sorted[:k], ids(hits)); diff != "" {
			t.Errorf("K = %d: -want +got:\n%s", k, diff)
		}
	}
}

// checkPrefix: asking for more never changes what came first.
func checkPrefix(t *testing.T, s Subject) {
	if s.FusesRanks {
		t.Skip("ranks of equal documents are the server's choice")
	}
	docs, _ := shelf(30)
	x := s.filled(t, append(docs, animals()...)...)
	for _, text := range []string{"animal", "page", "animal page otter", "rivers and cliffs"} {
		all := ids(ask(t, x, text, 35))
		for _, k := range []int{1, 2, 5, 12} {
			if got := ids(ask(t, x, text, k)); !slices.Equal(got, all[:min(k, len(all))]) {
				t.Errorf("%q: K = %d gave %q, K = 35 begins with %q", text, k, got, all[:min(k, len(all))])
			}
		}
	}
}

func checkLargeK(t *testing.T, s Subject) {
	x := s.filled(t, animals()...)
	for _, k := range []int{6, 1_000, 1_000_000} {
		if hits := ask(t, x, "animal", k); len(hits) != 5 {
			t.Errorf("K = %d found %q, want all 5", k, ids(hits))
		}
	}
}
