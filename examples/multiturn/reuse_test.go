package main

import (
	"flag"
	"os"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/ragpilottest"
)

// Two conversations repeat the instructions, and each turn repeats the ones before.
func TestPromptsCanBeCached(t *testing.T) {
	ragpilottest.AssertReuse(t, 0.99, func(rec *ragpilottest.Recorder) {
		talkTo(t, rec, "You are a patient cook.")
		talkTo(t, rec, "You are a patient cook.")
	})
}

// The contract bites: a clock in the instructions fails it, with this message.
func TestClock(t *testing.T) {
	_, err := ragpilottest.CheckReuse(t, 0.99, func(rec *ragpilottest.Recorder) {
		talkTo(t, rec, "It is 04:14. You are a patient cook.")
		talkTo(t, rec, "It is 04:15. You are a patient cook.")
	}, ragpilottest.TemplateText("instructions", "It is {{.Now}}. You are a patient cook."))
	golden(t, "testdata/clock.txt", err)
}

func talkTo(t *testing.T, rec *ragpilottest.Recorder, system string) {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := openai.New(openai.Config{BaseURL: rec.URL(), Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	talk(pilot, engine, system)
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
