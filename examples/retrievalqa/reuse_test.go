package main

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/ragpilottest"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/bleve"
)

// With ragpilot, what the questions have in common stands at the front of the prompts.
func TestPromptsCanBeCached(t *testing.T) {
	ragpilottest.AssertReuse(t, 0.95, func(rec *ragpilottest.Recorder) {
		pilot, err := contextpilot.New(contextpilot.Config{})
		if err != nil {
			t.Fatal(err)
		}
		askAll(langchain.Wrap(pilot, model(t, rec)), retriever.Wrap(pilot, notesOf(t).Retriever(3)))
	})
}

// The contract bites: documents in a random order fail it, with this message.
func TestShuffledDocuments(t *testing.T) {
	_, err := ragpilottest.CheckReuse(t, 0.95, func(rec *ragpilottest.Recorder) {
		askAll(model(t, rec), shuffled{notesOf(t).Retriever(3), rand.New(rand.NewPCG(1, 2))})
	}, ragpilottest.TemplateText("RetrievalQA", "an answer.\n\n{{.context}}\n\nQuestion: {{.question}}\nHelpful Answer:"))
	golden(t, "testdata/shuffled.txt", err)
}

func askAll(llm llms.Model, documents schema.Retriever) {
	for _, question := range questions() {
		answer(llm, documents, question)
	}
}

func model(t *testing.T, rec *ragpilottest.Recorder) llms.Model {
	llm, err := openai.New(openai.WithBaseURL(rec.URL()+"/v1"), openai.WithToken("none"))
	if err != nil {
		t.Fatal(err)
	}
	return llm
}

func notesOf(t *testing.T) *bleve.Index {
	index, err := bleve.New(notes, bleve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = index.Close() })
	return index
}

// shuffled returns documents in a random order.
type shuffled struct {
	schema.Retriever
	random *rand.Rand
}

func (s shuffled) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	found, err := s.Retriever.GetRelevantDocuments(ctx, query)
	s.random.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	return found, err
}

var update = flag.Bool("update", false, "write the golden files")

// golden compares the message of a failure with a file.
func golden(t *testing.T, file string, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("nothing failed")
	}
	got := err.Error() + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%v; the message is\n%s\nwant\n%s", err, got, want)
	}
}
