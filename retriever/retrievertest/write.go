package retrievertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// checkReindex: indexing the same documents again, in another order, changes nothing.
func checkReindex(t *testing.T, s Subject) {
	docs := animals()
	x := s.filled(t, docs...)
	before := ask(t, x, "an animal that swims", 10)
	slices.Reverse(docs)
	upsert(t, x, docs...)
	after := ask(t, x, "an animal that swims", 10)
	scoreless := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Score" }, cmp.Ignore())
	if diff := cmp.Diff(before, after, scoreless); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

// checkUpdate: another text is another version under the same ID, and nothing of the old text is found.
func checkUpdate(t *testing.T, s Subject) {
	x := s.filled(t, animals()...)
	before := hit(t, ask(t, x, "mole", 5), "mole")

	upsert(t, x, store.Document{ID: "mole", Text: "The badger is an animal that digs setts.", Metadata: map[string]any{"edition": "2"}})
	hits := ask(t, x, "badger", 5)
	after := hit(t, hits, "mole")
	if hits[0].ID != "mole" || !strings.Contains(after.Text, "badger") {
		t.Errorf("query %q found %q with text %q", "badger", ids(hits), after.Text)
	}
	if before.Version == after.Version {
		t.Errorf("version %q stayed when the text changed", after.Version)
	}
	if all := ask(t, x, "animal", 10); len(all) != 5 {
		t.Errorf("after an update there are %q", ids(all))
	}
	for _, h := range ask(t, x, "mole tunnels", 10) {
		if strings.Contains(h.Text, "tunnels") {
			t.Errorf("%q still has its old text", h.ID)
		}
	}

	upsert(t, x, store.Document{ID: "mole", Text: after.Text, Metadata: map[string]any{"pages": "9"}})
	again := hit(t, ask(t, x, "badger", 5), "mole")
	if again.Version != after.Version {
		t.Errorf("version %q became %q when only metadata changed", after.Version, again.Version)
	}
	if diff := cmp.Diff(map[string]any{"pages": "9"}, again.Metadata); diff != "" {
		t.Errorf("metadata: -want +got:\n%s", diff)
	}
}

func checkDelete(t *testing.T, s Subject) {
	x := s.filled(t, animals()...)
	ctx := within(t)
	if err := x.Delete(ctx, "", "otter", "camel", "no such document"); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	hits := ids(ask(t, x, "animal otter camel", 10))
	slices.Sort(hits)
	if want := []string{"eagle", "mole", "salmon"}; !slices.Equal(hits, want) {
		t.Errorf("after Delete there are %q, want %q", hits, want)
	}
	if err := errors.Join(x.Delete(ctx, "", "otter"), x.Delete(ctx, "")); err != nil {
		t.Errorf("Delete of nothing: %v", err)
	}
	upsert(t, x, doc("otter", "The otter is back."))
	if h := hit(t, ask(t, x, "otter", 5), "otter"); h.Text != "The otter is back." {
		t.Errorf("text %q after Delete and Upsert", h.Text)
	}
}

// checkMany: more documents than stores put into one request, one ID twice.
func checkMany(t *testing.T, s Subject) {
	const n = 1_200
	docs := make([]store.Document, 0, n+1)
	for i := range n {
		docs = append(docs, doc(fmt.Sprintf("%04d", i), fmt.Sprintf("Entry number%d of the register.", i)))
	}
	docs = append(docs, doc("0007", "Entry number7 of the register, corrected."))
	x := s.filled(t, docs...)
	if hits := ask(t, x, "register", n+100); len(hits) != n {
		t.Errorf("%d hits of %d documents", len(hits), n)
	}
	for _, i := range []int{0, 7, n - 1} {
		want := fmt.Sprintf("%04d", i)
		hits := ask(t, x, fmt.Sprintf("number%d", i), 3)
		if len(hits) == 0 || hits[0].ID != want {
			t.Fatalf("number%d found %q", i, ids(hits))
		}
		if i == 7 && !strings.HasSuffix(hits[0].Text, "corrected.") {
			t.Errorf("of two documents with one ID the first counts: %q", hits[0].Text)
		}
	}
}

func checkBadDocuments(t *testing.T, s Subject) {
	x := s.filled(t, doc("good", "A good page."))
	for name, d := range map[string]store.Document{
		"no ID":              {Text: "A page."},
		"ID is not UTF-8":    {ID: "a\xff", Text: "A page."},
		"value is a channel": {ID: "a", Text: "A page.", Metadata: map[string]any{"c": make(chan int)}},
	} {
		err := x.Upsert(within(t), []store.Document{d})
		if !errors.Is(err, store.ErrBadDocument) {
			t.Errorf("%s: error %v, want ErrBadDocument", name, err)
		}
	}
	if hits := ask(t, x, "page", 5); !slices.Equal(ids(hits), []string{"good"}) {
		t.Errorf("bad documents were stored: %q", ids(hits))
	}
}
