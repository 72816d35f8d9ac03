package retriever_test

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/passage"
)

// A store that was filled twice returns each text twice, under two IDs.
func TestDuplicatesBecomeOneBlockAndStayFindable(t *testing.T) {
	inner := literal{doc("p1", "Beta."), doc("p2", "Alpha."), doc("p3", "Beta."), doc("p4", "Alpha.")}
	docs := get(context.Background(), t, retriever.Wrap(newPilot(t, contextpilot.Config{}), inner))
	got := texts(docs)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"<doc p1>\nBeta.\n</doc>", "<doc p2>\nAlpha.\n</doc>"}, got); diff != "" {
		t.Error(diff)
	}
	type source struct{ Text, ID, Label, Reason string }
	var sources []source
	for i, d := range retriever.Sources(docs) {
		if d.Metadata["ragpilot.rank"] != i+1 || d.Score != 0.5 {
			t.Errorf("source %d: rank %v, score %v", i, d.Metadata["ragpilot.rank"], d.Score)
		}
		text := func(key string) string { s, _ := d.Metadata[key].(string); return s }
		sources = append(sources, source{d.PageContent, text("ragpilot.block_id"), text("ragpilot.label"), text("ragpilot.reason")})
	}
	want := []source{
		{"Beta.", "p1", "p1", ""},
		{"Alpha.", "p2", "p2", ""},
		{"Beta.", "p3", "p1", "duplicate"},
		{"Alpha.", "p4", "p2", "duplicate"},
	}
	if diff := cmp.Diff(want, sources); diff != "" {
		t.Error(diff)
	}
}

func TestSourcesWithBudget(t *testing.T) {
	inner := literal{
		{PageContent: "one two three four"}, {PageContent: "five six seven eight"}, {PageContent: "five six seven eight"},
	}
	pilot := newPilot(t, contextpilot.Config{})
	docs := get(context.Background(), t, retriever.Wrap(pilot, inner, retriever.WithBudget(6)))
	if len(docs) != 1 {
		t.Fatalf("%d documents, want 1 within the budget", len(docs))
	}
	if _, shown := docs[0].Metadata["ragpilot.left_out"]; !shown {
		t.Error("the last document does not hold what was left out")
	}
	sources := retriever.Sources(docs)
	want := []string{"one two three four", "five six seven eight", "five six seven eight"}
	if diff := cmp.Diff(want, texts(sources)); diff != "" {
		t.Error(diff)
	}
	if got := sources[1].Metadata["ragpilot.reason"]; got != "over budget" {
		t.Errorf("reason %v", got)
	}
	if docs := get(context.Background(), t, retriever.Wrap(pilot, inner, retriever.WithBudget(1))); len(docs) != 0 {
		t.Errorf("%d documents within a budget of one token", len(docs))
	}
	if held := framework.OffersOf(pilot).Stats().Held; held != 1 {
		t.Errorf("%d plans held, want the one with blocks", held)
	}
}

func TestSourcesKeepsWhatItDoesNotKnow(t *testing.T) {
	planned := get(context.Background(), t, retriever.Wrap(newPilot(t, contextpilot.Config{}), literal{doc("a", "Alpha.")}))
	foreign := schema.Document{PageContent: "from elsewhere"}
	before := []schema.Document{foreign, planned[0]}
	got := retriever.Sources(before)
	if diff := cmp.Diff([]string{"Alpha.", "from elsewhere"}, texts(got)); diff != "" {
		t.Error(diff)
	}
	if before[1].Metadata["ragpilot.text"] != "Alpha." {
		t.Error("the documents given were changed")
	}
	if got := retriever.Sources(nil); len(got) != 0 {
		t.Errorf("%d sources of nothing", len(got))
	}
}

func TestIDs(t *testing.T) {
	type uuid string
	content := "~" // what an ID made from the text begins with
	version := passage.ContentVersion("Text.")
	files := retriever.WithIDKeys("source")
	for _, test := range []struct {
		name     string
		metadata map[string]any
		opts     []retriever.Option
		want     string
	}{
		{"string", map[string]any{"id": "a7"}, nil, "a7"},
		{"named string", map[string]any{"id": uuid("u-1")}, nil, "u-1"},
		{"int", map[string]any{"_id": 42}, nil, "42"},
		{"uint64", map[string]any{"doc_id": uint64(math.MaxUint64)}, nil, "18446744073709551615@" + version},
		{"whole float", map[string]any{"id": 42.0}, nil, "42"},
		{"large whole float", map[string]any{"id": 12345678.0}, nil, "12345678"},
		{"JSON number", map[string]any{"id": json.Number("7")}, nil, "7"},
		{"first key wins", map[string]any{"doc_id": "d", "_id": "i"}, nil, "i"},
		{"empty is none", map[string]any{"id": "", "doc_id": "d"}, nil, "d@" + version},
		{"not a number", map[string]any{"id": math.NaN()}, nil, content},
		{"neither string nor number", map[string]any{"id": []string{"a"}}, nil, content},
		{"nil", map[string]any{"id": nil}, nil, content},
		{"no metadata", nil, nil, content},
		{"own key", map[string]any{"id": "a", "chunk": "c"}, []retriever.Option{retriever.WithIDKeys("chunk")}, "c"},
		{"file of a chunk", map[string]any{"source": "a.md"}, []retriever.Option{files}, "a.md@" + version},
		{"address of a chunk", map[string]any{"source": "b#c@d"}, []retriever.Option{files}, "b%23c%40d@" + version},
		{"ID as source", map[string]any{"source": "a.md#2"}, []retriever.Option{files}, "a.md@" + version + "#2"},
		{
			"number of the chunk",
			map[string]any{"source": "a.md", "chunk": 3},
			[]retriever.Option{files, retriever.WithVersionedIDs()},
			"a.md@" + version + "#3",
		},
		{
			"whole files",
			map[string]any{"source": "a.md"},
			[]retriever.Option{files, retriever.WithPlaces(retriever.Places{Document: []string{}})},
			"a.md",
		},
		{"no keys", map[string]any{"id": "a"}, []retriever.Option{retriever.WithIDKeys()}, content},
	} {
		t.Run(test.name, func(t *testing.T) {
			inner := literal{{PageContent: "Text.", Metadata: test.metadata}}
			docs := get(context.Background(), t, retriever.Wrap(newPilot(t, contextpilot.Config{}), inner, test.opts...))
			got, _ := docs[0].Metadata["ragpilot.block_id"].(string)
			if test.want == content && len(got) > 1 {
				got = got[:1]
			}
			if got != test.want {
				t.Errorf("ID %q, want %q", got, test.want)
			}
		})
	}
}

// Chunks that carry their file's ID would all be cited by one name, in one result or in several of one conversation.
func TestEachTextHasItsLabel(t *testing.T) {
	planned := func(docs ...schema.Document) []schema.Document {
		return get(context.Background(), t, retriever.Wrap(newPilot(t, contextpilot.Config{}), literal(docs), retriever.WithIDKeys("source")))
	}
	chunk := func(text string) schema.Document {
		return schema.Document{PageContent: text, Metadata: map[string]any{"source": "a.md"}}
	}
	textOf := map[string]string{}
	for _, docs := range [][]schema.Document{
		planned(chunk("Chapter 1."), chunk("Chapter 2.")), planned(chunk("Chapter 1.")),
		planned(chunk("Chapter 3.")),
	} {
		for _, d := range retriever.Sources(docs) {
			label, _ := d.Metadata["ragpilot.label"].(string)
			if text, seen := textOf[label]; seen && text != d.PageContent || !strings.HasPrefix(label, "a.md@") {
				t.Errorf("label %q of %q and of %q", label, text, d.PageContent)
			}
			textOf[label] = d.PageContent
		}
	}
	if len(textOf) != 3 {
		t.Errorf("labels %v, want one for each of three texts", textOf)
	}
}

// An ID that several texts of a result have is the document's.
func TestSharedIDGetsVersions(t *testing.T) {
	inner := literal{doc("manual", "Chapter 1."), doc("manual", "Chapter 2."), doc("faq", "Yes."), doc("faq", "Yes.")}
	docs := get(context.Background(), t, retriever.Wrap(newPilot(t, contextpilot.Config{}), inner))
	labels := map[string]bool{}
	for _, d := range docs {
		labels[d.Metadata["ragpilot.label"].(string)] = true
	}
	one, two := "manual@"+passage.ContentVersion("Chapter 1."), "manual@"+passage.ContentVersion("Chapter 2.")
	if len(docs) != 3 || len(labels) != 3 || !labels[one] || !labels[two] || !labels["faq"] {
		t.Errorf("%d documents, labels %v", len(docs), labels)
	}
}
