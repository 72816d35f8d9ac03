package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// chatWith runs a chat with lines as input.
func chatWith(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(append([]string{"chat"}, args...))
	root.SetIn(strings.NewReader(input))
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// Answers come with what was sent: what an earlier turn has shown is a reference, and in a new conversation it is not.
func TestChat(t *testing.T) {
	server := serve(t, 0)
	out, err := chatWith(t,
		"How long may a film be kept on loan?\n\nHow long may a book be kept on loan?\n/new\nHow long may a film be kept on loan?\n/quit\nnot "+
			"asked\n",
		"--engine", server.URL, "--model", "m")
	if err != nil {
		t.Fatal(err)
	}
	turns := strings.Split(out, "An answer.")
	if len(turns) != 4 {
		t.Fatalf("%d answers, want 3:\n%s", len(turns)-1, out)
	}
	if strings.Contains(turns[1], "(loans.md#0)") || !strings.Contains(turns[2], "(loans.md#0)") ||
		strings.Contains(turns[3], "(loans.md#0)") {
		t.Errorf("references only in the second turn are expected:\n%s", out)
	}
	if !strings.Contains(out, "640 prompt tokens, an unknown part of them from the cache") {
		t.Errorf("no figures:\n%s", out)
	}
}

// Each question is sent with the conversation so far, and /new forgets it. Stop texts go with every request.
func TestChatHistory(t *testing.T) {
	type message struct{ Role, Content string }
	var sent []struct {
		Messages []message
		Stop     []string
	}
	answers := serve(t, 0).Config.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/chat/completions") { // one at a time
			sent = append(sent, struct {
				Messages []message
				Stop     []string
			}{})
			if err := json.NewDecoder(r.Body).Decode(&sent[len(sent)-1]); err != nil {
				t.Error(err)
			}
		}
		answers.ServeHTTP(w, r)
	}))
	defer server.Close()
	out, err := chatWith(t, "How long may a film be kept?\nAnd a book?\n/new\nMay a newspaper be borrowed?\n",
		"--engine", server.URL, "--model", "m", "--stop", "User:", "--stop", "a, b")
	if err != nil || len(sent) != 3 {
		t.Fatalf("%d requests, want 3; error %v, output:\n%s", len(sent), err, out)
	}
	for i, want := range []string{"system user", "system user assistant user", "system user"} {
		var roles []string
		for _, m := range sent[i].Messages {
			roles = append(roles, m.Role)
		}
		if got := strings.Join(roles, " "); got != want {
			t.Errorf("request %d has messages of %s, want %s", i+1, got, want)
		}
		if !slices.Equal(sent[i].Stop, []string{"User:", "a, b"}) {
			t.Errorf("request %d stops at %q", i+1, sent[i].Stop)
		}
	}
	if first, second := sent[0].Messages, sent[1].Messages; second[1] != first[1] || second[2].Content != "An answer." ||
		!strings.Contains(second[3].Content, "And a book?") {
		t.Errorf("second request %q after the first %q", second, first)
	}
}

// If a question is not answered, the error is printed and the next one is asked.
func TestChatGoesOn(t *testing.T) {
	server := serve(t, 1)
	out, err := chatWith(t, "How long may a film be kept?\nAnd a book?\n", "--engine", server.URL, "--model", "m")
	if err != nil || strings.Count(out, "no answer: ") != 2 {
		t.Errorf("error %v, output:\n%s", err, out)
	}
}

// A server that cannot keep its slots in files answers all the same; why it cannot is printed at the end.
func TestChatSlots(t *testing.T) {
	out, err := chatWith(t, "How long may a film be kept?\n", "--engine", slotServer(t, true), "--slot-dir", t.TempDir())
	if err != nil || !strings.Contains(out, "prompt tokens, ") || !strings.Contains(out, "slot files: off: ") {
		t.Errorf("error %v, output:\n%s", err, out)
	}
	for want, args := range map[string][]string{
		"only with --engine URL": {"--slot-dir", t.TempDir()},
		"SlotBytes -1":           {"--engine", slotServer(t, true), "--slot-dir", t.TempDir(), "--slot-bytes", "-1"},
	} {
		if _, err := chatWith(t, "", args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// A chat ends when it is interrupted, even without input.
func TestChatInterrupted(t *testing.T) {
	server := serve(t, 0)
	ctx, interrupt := context.WithCancel(t.Context())
	in, typed := io.Pipe()
	defer typed.Close()
	root := newRoot()
	root.SetArgs([]string{"chat", "--engine", server.URL, "--model", "m"})
	root.SetIn(in)
	root.SetOut(writes(func(p []byte) {
		if bytes.Contains(p, []byte("> ")) {
			interrupt()
		}
	}))
	if err := root.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// writes is called with what is written.
type writes func(p []byte)

func (w writes) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

func TestChatFlags(t *testing.T) {
	for name, args := range map[string][]string{
		"--k 0":          {"--k", "0"},
		"--stop":         {"--stop", ""},
		"--docs":         {"--docs", t.TempDir() + "/nowhere"},
		"--model":        {"--model", t.TempDir() + "/no.gguf"},
		"--max-tokens 0": {"--max-tokens", "0"},
	} {
		if _, err := chatWith(t, "", args...); err == nil || !strings.Contains(err.Error(), strings.Fields(name)[0]) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Without a way to a model the demonstration says so and runs the simulator; if the model is asked for, that is an error.
func TestDemoWithoutModel(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("RAGPILOT_MODELS", t.TempDir())
	if _, err := run(t, "demo", "--engine", "local", "--out", ""); err == nil || !strings.Contains(err.Error(), "--model") {
		t.Errorf("error %v", err)
	}
	var out, progress bytes.Buffer
	root := newRoot()
	root.SetArgs([]string{"demo", "--out", ""})
	root.SetOut(&out)
	root.SetErr(&progress)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(progress.String(), "simulator in place of a model: ") || !strings.Contains(out.String(), "engine: simulator") {
		t.Errorf("progress %q, output:\n%s", &progress, &out)
	}
}

// An answer from a context of another task is warned of, beside what is said.
func TestChatWarnsOfAnotherTask(t *testing.T) {
	for _, x := range []struct {
		fit  *engines.ContextFit
		want string
	}{
		{&engines.ContextFit{Drift: 0.5, OtherTask: true}, "another task, it seems (drift 0.50)"},
		{&engines.ContextFit{Drift: 0.1}, ""},
		{nil, ""},
	} {
		var out, warnings bytes.Buffer
		c := conversation{flags: &chatFlags{context: "a"}, out: &out, warnings: &warnings}
		c.report(&contextpilot.Plan{}, engines.Response{Context: x.fit})
		if got := warnings.String(); (x.want == "") != (got == "") || !strings.Contains(got, x.want) || strings.Count(got, "\n") > 1 ||
			strings.Contains(out.String(), "task") {
			t.Errorf("%v: %q beside %q", x.fit, got, out.String())
		}
	}
}
