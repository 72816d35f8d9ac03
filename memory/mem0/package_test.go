package mem0_test

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/mem0"
)

// TestPublishedPackage is run by .ci/mem0.sh against the memory of the published package mem0ai: what it stores, finds and answers
// is Mem0's own.
func TestPublishedPackage(t *testing.T) {
	address := os.Getenv("RAGPILOT_MEM0_SERVER")
	if address == "" {
		t.Skip("RAGPILOT_MEM0_SERVER is not set: .ci/mem0.sh starts a server")
	}
	c, ctx := newClient(t, address, mem0.Options{Dialect: mem0.SelfHosted}), t.Context()
	ana := memory.Scope{User: "ana", Run: "1"}
	raw := memory.AddOptions{
		Extractor: memory.Everything{}, Metadata: map[string]any{"topic": "life"},
		ExpiresAt: time.Date(2999, 1, 2, 0, 0, 0, 0, time.UTC),
	}
	changes, err := c.Add(ctx, ana, said("Ana keeps bees.", "Ana lives in Porto."), raw)
	if err != nil || len(changes) != 2 || changes[0].Event != memory.Added || changes[0].Text != "Ana keeps bees." || changes[0].ID == "" {
		t.Fatalf("%+v, %v", changes, err)
	}
	if _, err := c.Add(ctx, memory.Scope{User: "ben"}, said("Hi! Ben keeps a parrot. And you?"),
		memory.AddOptions{Extractor: memory.Verbatim{}}); err != nil {
		t.Fatal(err)
	}
	hits, err := c.Search(ctx, memory.Scope{User: "ana"}, "who keeps bees?", 1, memory.SearchOptions{Filter: memory.Eq("topic", "life")})
	if err != nil || len(hits) != 1 || hits[0].Score <= 0 || hits[0].Memory.Text != "Ana keeps bees." {
		t.Fatalf("%+v, %v", hits, err)
	}
	m, err := c.Get(ctx, changes[0].ID)
	if err != nil || m.ID != changes[0].ID || m.Text != "Ana keeps bees." || m.Scope != ana || m.Role != "user" ||
		m.Metadata["topic"] != "life" ||
		!m.ExpiresAt.Equal(raw.ExpiresAt) || time.Since(m.CreatedAt) > time.Hour || m.Hash != memory.HashOf(m.Text) {
		t.Errorf("%+v, %v", m, err)
	}
	all, err := c.GetAll(ctx, memory.Scope{User: "ana"}, memory.ListOptions{})
	if err != nil || !slices.Equal(texts(all), []string{"Ana keeps bees.", "Ana lives in Porto."}) {
		t.Errorf("%+v, %v", all, err)
	}
	if ben, err := c.GetAll(ctx, memory.Scope{User: "ben"}, memory.ListOptions{}); err != nil ||
		!slices.Equal(texts(ben), []string{"Ben keeps a parrot."}) {
		t.Errorf("of a message its statement is stored: %+v, %v", ben, err)
	}
	text := "Ana sold her bees."
	if m, err := c.Update(ctx, changes[0].ID, memory.Update{Text: &text}); err != nil || m.Text != text || m.ID != changes[0].ID {
		t.Errorf("%+v, %v", m, err)
	}
	if err := c.Delete(ctx, changes[0].ID, memory.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	rows, err := c.History(ctx, changes[0].ID)
	var events []memory.Event
	for _, r := range rows {
		events = append(events, r.Event)
	}
	if err != nil || !slices.Equal(events, []memory.Event{memory.Added, memory.Updated, memory.Deleted}) || rows[1].New != text ||
		rows[1].At.IsZero() {
		t.Errorf("%+v, %v", rows, err)
	}
	if n, err := c.DeleteAll(ctx, memory.Scope{User: "ana"}, memory.DeleteOptions{}); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	const none = "0c7a4a2e-5f5e-4d0c-9a51-1d9b2d8f5a10"
	_, get := c.Get(ctx, changes[0].ID)
	_, history := c.History(ctx, none)
	_, update := c.Update(ctx, none, memory.Update{Text: &text})
	for what, err := range map[string]error{
		"get what was deleted": get, "history of none": history, "update of none": update,
		"delete none": c.Delete(ctx, none, memory.DeleteOptions{}),
	} {
		if !errors.Is(err, memory.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := c.Reset(ctx); err != nil {
		t.Error(err)
	}
	if all, err := c.GetAll(ctx, memory.Scope{User: "ben"}, memory.ListOptions{}); err != nil || len(all) > 0 {
		t.Errorf("after a reset: %+v, %v", all, err)
	}
}
