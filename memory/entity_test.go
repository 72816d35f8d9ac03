package memory_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/memory"
)

func TestNames(t *testing.T) {
	for text, want := range map[string][]string{
		"Ana Maria moved to Oslo, Norway. She likes it.": {"ana maria", "oslo", "norway"},
		"What does Caroline's sister do in New York?":    {"caroline", "new york"},
		"The dog of Mr. O'Brien is Rex":                  {"mr", "o brien", "rex"},
		"nothing at all":                                 nil,
		"":                                               nil,
		"I am X":                                         nil, // a letter
		"Rex, Rex and REX":                               {"rex"},
		"Who Is Who":                                     nil,
		"ÅSE lives in Ørsta (NORWAY)":                    {"åse", "ørsta", "norway"},
	} {
		if got := memory.Names(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Names are words of the text in lower case, without repeats, and bounded in number.
func TestNamesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`([A-Z][a-z]{0,3}[ ,.'-]){0,80}`)).Draw(t, "text")
		names := memory.Names(text)
		if len(names) > 32 {
			t.Fatalf("%d names", len(names))
		}
		seen := map[string]bool{}
		for _, name := range names {
			if seen[name] || name != strings.ToLower(name) || name != strings.Join(strings.Fields(name), " ") || strings.Count(name, " ") > 7 {
				t.Fatalf("name %q of %q", name, text)
			}
			seen[name] = true
		}
	})
}

// What a query names comes before what only sounds like it; what many memories name says little; and the boost is bounded.
func TestEntityBoost(t *testing.T) {
	store := newStore(t, memory.Config{})
	mustAdd(t, store, "Rex Oslo is the name of the boat.", "The boat is red and old and was bought from a friend.", "Ana likes tea.",
		"Ana has a cat.")
	hits := search(t, store, "was the Rex Oslo bought from a friend?")
	if got := hits[0]; got.Entity != 1 {
		t.Errorf("first %q with boost %v, want the one that is named, with 1", got.Memory.Text, got.Entity)
	}
	shared := search(t, store, "what about ana?") // whatever its case
	for _, h := range shared {
		want := 0.0
		if strings.Contains(h.Memory.Text, "Ana") {
			want = 1 / 1.001
		}
		if math.Abs(h.Entity-want) > 1e-6 {
			t.Errorf("%q has boost %v, want %v", h.Memory.Text, h.Entity, want)
		}
		if h.Score < 0 || h.Score > 1 {
			t.Errorf("score %v", h.Score)
		}
	}
	part := search(t, store, "what of the boat Oslo?") // half of a name
	if i := slices.IndexFunc(part, func(h memory.Hit) bool { return h.Entity > 0 }); i < 0 || part[i].Entity != 1 && part[i].Entity != 0.5 {
		t.Errorf("half of a name: %+v", part)
	}
}

// Updates change what a memory is named by, and a store can leave names alone.
func TestEntitiesFollow(t *testing.T) {
	store := newStore(t, memory.Config{})
	id := mustAdd(t, store, "Lives in Oslo.")[0].ID
	text := "Lives in Bergen."
	if _, err := store.Update(t.Context(), id, memory.Update{Text: &text}); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]float64{"what of Oslo?": 0, "what of Bergen?": 1} {
		if got := search(t, store, query)[0].Entity; got != want {
			t.Errorf("%s: boost %v, want %v", query, got, want)
		}
	}
	without := newStore(t, memory.Config{NoEntities: true})
	mustAdd(t, without, "Lives in Bergen.")
	if h := search(t, without, "what of Bergen?")[0]; h.Entity != 0 || h.Score <= 0 {
		t.Errorf("without entities: %+v", h)
	}
}

// A model's names are kept in place of the rule's; what is no name is passed over.
func TestModelNamesEntities(t *testing.T) {
	model := &fakeModel{}
	store := newStore(t, memory.Config{Extractor: memory.AddOnly(model)})
	model.answers = []string{`{"memory": [{"text": "keeps bees near the fjord", "entities": ["Hardanger-Fjord", "Hardanger fjord", 7]},
		{"text": "has a goat", "entities": ["The  Goat"]}, {"text": "sold Rex", "entities": "Rex"}]}`}
	mustAdd(t, store, "anything")
	for query, want := range map[string]float64{"where is hardanger fjord?": 1, "what of the goat?": 1, "what of rex?": 1} {
		best := 0.0
		for _, h := range search(t, store, query) {
			best = max(best, h.Entity)
		}
		if best != want {
			t.Errorf("%s: boost %v, want %v", query, best, want)
		}
	}
}

// A change of what is known beside the text leaves the names that a model gave it.
func TestNamesOutliveMetadata(t *testing.T) {
	model := &fakeModel{answers: []string{`{"memory": [{"text": "keeps bees near the fjord", "entities": ["Hardanger fjord"]}]}`}}
	store := newStore(t, memory.Config{Extractor: memory.AddOnly(model)})
	id := mustAdd(t, store, "anything")[0].ID
	if _, err := store.Update(t.Context(), id, memory.Update{Metadata: map[string]any{"seen": true}}); err != nil {
		t.Fatal(err)
	}
	if got := search(t, store, "where is hardanger fjord?")[0]; got.Entity != 1 || got.Memory.Metadata["seen"] != true {
		t.Errorf("boost %v, %+v", got.Entity, got.Memory)
	}
}

// meddler changes a memory's text while its store embeds.
type meddler struct {
	embed.Embedder

	meddle func()
}

func (m *meddler) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	if f := m.meddle; f != nil {
		m.meddle = nil
		f()
	}
	return m.Embedder.EmbedDocuments(ctx, texts)
}

// Texts that change while they are embedded are embedded again.
func TestTextChangesMeanwhile(t *testing.T) {
	embedder := &meddler{Embedder: embed.NewHashed(0)}
	store := newStore(t, memory.Config{Embedder: embedder})
	id := mustAdd(t, store, "Lives in Oslo.")[0].ID
	change := func(text string) func() {
		return func() {
			if _, err := store.Update(t.Context(), id, memory.Update{Text: &text}); err != nil {
				t.Error(err)
			}
		}
	}
	embedder.meddle = change("Lives in Bergen.")
	m, err := store.Update(t.Context(), id, memory.Update{Metadata: map[string]any{"seen": true}})
	if err != nil || m.Text != "Lives in Bergen." || m.Metadata["seen"] != true {
		t.Errorf("%+v, %v", m, err)
	}
	embedder.meddle = change("Keeps seven goats.")
	if err := store.Reembed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := search(t, store, "Keeps seven goats.")[0].Semantic; got < 0.99 {
		t.Errorf("the text is as near to itself as %v", got)
	}
}

func search(t *testing.T, store memory.Store, query string) []memory.Hit {
	t.Helper()
	hits, err := store.Search(t.Context(), ana, query, 100, memory.SearchOptions{Threshold: -1})
	if err != nil || len(hits) == 0 {
		t.Fatalf("Search(%q) = %d hits, %v", query, len(hits), err)
	}
	return hits
}
