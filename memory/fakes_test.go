package memory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/memory"
)

// fakeModel answers with its script, one answer a call, and notes what it was asked.
type fakeModel struct {
	answers []string
	asked   []string // user prompts
	systems []string
}

var errNoAnswer = errors.New("the fake model has no answer left")

func (f *fakeModel) Complete(_ context.Context, system, user string) (string, error) {
	f.systems, f.asked = append(f.systems, system), append(f.asked, user)
	if len(f.answers) == 0 {
		return "", errNoAnswer
	}
	answer := f.answers[0]
	f.answers = f.answers[1:]
	return answer, nil
}

// newStore returns a store in memory whose clock moves a second at each reading and whose IDs are m1, m2 and so on.
func newStore(t testing.TB, cfg memory.Config) *memory.Local {
	t.Helper()
	if cfg.Embedder == nil {
		cfg.Embedder = memory.Lexical
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	n := 0
	if cfg.Now == nil {
		cfg.Now = func() time.Time { now = now.Add(time.Second); return now }
	}
	cfg.NewID = func() string { n++; return fmt.Sprint("m", n) }
	store, err := memory.New(memory.NewInMemory(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

var ana = memory.Scope{User: "ana"}

func said(texts ...string) []memory.Message {
	var messages []memory.Message
	for _, text := range texts {
		messages = append(messages, memory.Message{Role: memory.User, Content: text})
	}
	return messages
}

func mustAdd(t testing.TB, store memory.Store, texts ...string) []memory.Change {
	t.Helper()
	changes, err := store.Add(t.Context(), ana, said(texts...), memory.AddOptions{})
	if err != nil {
		t.Fatalf("Add(%q): %v", texts, err)
	}
	return changes
}

func textsOf(t testing.TB, store memory.Store, scope memory.Scope) []string {
	t.Helper()
	all, err := store.GetAll(t.Context(), scope, memory.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for _, m := range all {
		texts = append(texts, m.Text)
	}
	return texts
}
