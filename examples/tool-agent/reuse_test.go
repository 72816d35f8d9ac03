package main

import (
	"flag"
	"os"
	"testing"

	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/tools"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/ragpilottest"
	"github.com/ragpilot/ragpilot/retriever/bleve"
)

// Each step of the agent repeats the ones before, and a second run repeats the first one.
func TestPromptsCanBeCached(t *testing.T) {
	ragpilottest.AssertReuse(t, 0.99, func(rec *ragpilottest.Recorder) {
		ask(rec, newSearch(), tools.Calculator{})
		ask(rec, newSearch(), tools.Calculator{})
	}, steps)
}

// The contract bites: tools in another order, as a map gives them, fail it, with this message.
func TestShuffledTools(t *testing.T) {
	_, err := ragpilottest.CheckReuse(t, 0.99, func(rec *ragpilottest.Recorder) {
		ask(rec, newSearch(), tools.Calculator{})
		ask(rec, tools.Calculator{}, newSearch())
	}, steps)
	golden(t, "testdata/shuffled.txt", err)
}

// steps are what the model says: it searches twice before it answers.
var steps = ragpilottest.Answers(
	ragpilottest.Answer{Calls: []ragpilottest.Call{{Name: "search", Arguments: map[string]any{"__arg1": "who works the gates"}}}},
	ragpilottest.Answer{Calls: []ragpilottest.Call{{Name: "search", Arguments: map[string]any{"__arg1": "paddles of the gates"}}}},
	ragpilottest.Answer{Text: "The keeper, if it carries goods."},
)

func ask(rec *ragpilottest.Recorder, list ...tools.Tool) {
	run(must(openai.New(openai.WithBaseURL(rec.URL()+"/v1"), openai.WithToken("none"))), list...)
}

func newSearch() *search {
	return &search{index: must(bleve.New(notes, bleve.Options{})), pilot: must(contextpilot.New(contextpilot.Config{}))}
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
