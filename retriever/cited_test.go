package retriever_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever"
)

// twice is a fake retriever that finds two copies of one text between other documents.
type twice struct{}

func (twice) GetRelevantDocuments(context.Context, string) ([]schema.Document, error) {
	var docs []schema.Document
	for _, d := range [][2]string{
		{"pump", "All about pumps."},
		{"valve", "All about valves."},
		{"copy", "All about pumps."},
		{"motor", "All about motors."},
	} {
		docs = append(docs, schema.Document{PageContent: d[1], Metadata: map[string]any{"id": d[0], "url": "http://example.com/" + d[0]}})
	}
	return docs, nil
}

func TestCited(t *testing.T) {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	docs, err := retriever.Wrap(pilot, twice{}, retriever.WithBudget(10)).GetRelevantDocuments(context.Background(), "?")
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string][]string{
		"pump":  {"http://example.com/pump All about pumps.", "http://example.com/copy All about pumps."},
		"valve": {"http://example.com/valve All about valves."},
		"motor": nil, // over the budget: the model did not see it
		"copy":  nil, // the model saw it as pump
		"":      nil,
	} {
		var got []string
		for _, d := range retriever.Cited(docs, label) {
			got = append(got, d.Metadata["url"].(string)+" "+d.PageContent)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("[%s] (-want +got):\n%s", label, diff)
		}
	}
}
