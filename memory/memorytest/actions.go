package memorytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ragpilot/ragpilot/memory"
)

// with adds by a fake extractor.
func (b *bench) with(text string, f scripted) ([]memory.Change, error) {
	return b.store.Add(b.ctx, user("ana"), said(text), memory.AddOptions{Extractor: f})
}

func checkActions(b *bench) {
	ids := b.add(user("ana"), "Lives in Oslo.", "Likes tea.", "Has a dog.")
	changes, err := b.with("I moved to Bergen, the dog ran away, and my sister is Eva.", func(known []memory.Memory) ([]memory.Action, error) {
		return []memory.Action{
			{Event: memory.Updated, ID: idOf(known, "Lives in Oslo."), Text: "Lives in Bergen."},
			{Event: memory.Deleted, ID: idOf(known, "Has a dog.")},
			{Event: memory.Added, Text: "Sister is Eva."},
			{Event: memory.None, ID: idOf(known, "Likes tea.")},
		}, nil
	})
	b.must(err)
	want := []memory.Change{
		{ID: ids[0], Event: memory.Updated, Text: "Lives in Bergen.", Old: "Lives in Oslo."},
		{ID: ids[2], Event: memory.Deleted, Text: "Has a dog."},
		{Event: memory.Added, Text: "Sister is Eva."},
	}
	if len(changes) == 3 {
		want[2].ID = changes[2].ID
	}
	b.equal("changes", want, changes)
	b.equal("texts", []string{"Lives in Bergen.", "Likes tea.", "Sister is Eva."}, texts(b.all(user("ana"))))
	if rows := b.history(ids[2]); len(rows) != 2 || rows[1].Event != memory.Deleted || rows[1].Old != "Has a dog." {
		b.Errorf("an extractor's deletion is not an erasure: %+v", rows)
	}
	// An update to what another memory says leaves one of the two.
	if _, err := b.with("Tea, only tea.", func(known []memory.Memory) ([]memory.Action, error) {
		return []memory.Action{{Event: memory.Updated, ID: idOf(known, "Sister is Eva."), Text: "Likes tea."}}, nil
	}); err != nil {
		b.Fatal(err)
	}
	b.equal("texts", []string{"Lives in Bergen.", "Likes tea."}, texts(b.all(user("ana"))))
}

func checkUnknownIDs(b *bench) {
	other := b.add(user("bo"), "Bo lives in Oslo.")[0]
	b.add(user("ana"), "Ana lives in Oslo.")
	changes, err := b.with("Who lives in Oslo?", func([]memory.Memory) ([]memory.Action, error) {
		return []memory.Action{
			{Event: memory.Deleted, ID: other},
			{Event: memory.Updated, ID: other, Text: "Bo lives nowhere."},
			{Event: memory.Deleted, ID: "invented"},
			{Event: "EXPLODE", ID: other, Text: "x"},
			{Event: memory.Added, Text: " \t"},
		}, nil
	})
	if err != nil || len(changes) != 0 {
		b.Errorf("%+v, %v; want nothing", changes, err)
	}
	if got := b.get(other).Text; got != "Bo lives in Oslo." {
		b.Errorf("another user's memory became %q", got)
	}
}

func checkAllOrNothing(b *bench) {
	b.add(user("ana"), "Lives in Oslo.")
	broken := errors.New("the model is away")
	_, err := b.with("anything", func([]memory.Memory) ([]memory.Action, error) {
		return []memory.Action{{Event: memory.Added, Text: "half of it"}}, broken
	})
	b.fails("a failing extractor gives", err, broken)
	b.equal("texts", []string{"Lives in Oslo."}, texts(b.all(user("ana"))))
	if ids := b.add(user("ana"), "Likes tea."); len(ids) != 1 {
		b.Errorf("after a failure, Add stores %d", len(ids))
	}
}

// checkConcurrentAdds: one text that many add at a time is one memory.
func checkConcurrentAdds(b *bench) {
	const adders = 16
	var group sync.WaitGroup
	for i := range adders {
		group.Go(func() {
			_, err := b.store.Add(b.ctx, user("ana"), said("Lives in Oslo.", fmt.Sprint("Number ", i)), memory.AddOptions{})
			if err != nil {
				b.Errorf("Add: %v", err)
			}
		})
	}
	group.Wait()
	all := b.all(user("ana"))
	if len(all) != adders+1 {
		b.Errorf("%d memories, want %d: %q", len(all), adders+1, texts(all))
	}
}

// checkConcurrentUse mixes everything; the race detector and the sums show whether it went well.
func checkConcurrentUse(b *bench) {
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			scope := user(fmt.Sprint("u", i%3))
			for j := range 8 {
				text := fmt.Sprintf("fact %d of %d", j, i)
				changes, err := b.store.Add(b.ctx, scope, said(text), memory.AddOptions{})
				if err != nil || len(changes) != 1 {
					b.Errorf("Add(%q) = %v, %v", text, changes, err)
					return
				}
				if _, err := b.store.Search(b.ctx, scope, text, 3, memory.SearchOptions{}); err != nil {
					b.Errorf("Search: %v", err)
				}
				if j%2 == 0 {
					if err := b.store.Delete(b.ctx, changes[0].ID, memory.DeleteOptions{}); err != nil {
						b.Errorf("Delete: %v", err)
					}
				}
				if _, err := b.store.GetAll(b.ctx, scope, memory.ListOptions{}); err != nil {
					b.Errorf("GetAll: %v", err)
				}
			}
		})
	}
	group.Wait()
	left := 0
	for i := range 3 {
		left += len(b.all(user(fmt.Sprint("u", i))))
	}
	if left != 24 {
		b.Errorf("%d memories left, want 24", left)
	}
}

func checkMessageLog(b *bench) {
	log, ok := b.store.(memory.MessageLog)
	if !ok {
		b.Skip("keeps no conversations")
	}
	read := func(scope memory.Scope, last int) []memory.Message {
		b.Helper()
		messages, err := log.Messages(b.ctx, scope, last)
		b.must(err)
		return messages
	}
	scope := memory.Scope{User: "ana", Run: "7"}
	first := []memory.Message{
		{Role: memory.User, Content: "Hi", Name: "ana"}, {Role: memory.Assistant, Content: "", Extra: []byte(`{"calls":[1]}`)},
	}
	b.must(log.AppendMessages(b.ctx, scope, first...))
	b.must(log.AppendMessages(b.ctx, scope, memory.Message{Role: memory.Tool, Content: "42"}))
	b.must(log.AppendMessages(b.ctx, user("ana"), said("elsewhere")...))
	want := slices.Concat(first, []memory.Message{{Role: memory.Tool, Content: "42"}})
	b.equal("the result", want, read(scope, 0), cmpopts.EquateEmpty())
	b.equal("the last two", want[1:], read(scope, 2), cmpopts.EquateEmpty())
	b.must(log.SetMessages(b.ctx, scope, said("new")))
	b.equal("replaced", said("new"), read(scope, 0), cmpopts.EquateEmpty())
	b.must(log.SetMessages(b.ctx, scope, nil))
	if n := len(read(scope, 0)); n != 0 {
		b.Errorf("%d messages after all were removed", n)
	}
	if n := len(read(user("ana"), 0)); n != 1 {
		b.Errorf("%d messages in another conversation, want 1", n)
	}
	b.fails("without a scope", log.AppendMessages(b.ctx, memory.Scope{}, said("a")...), memory.ErrNoScope)
}

// scripted is a fake extractor: it looks up what is related to the messages, as one that asks a model does, and
// returns what the check wants.
type scripted func(related []memory.Memory) ([]memory.Action, error)

func (f scripted) Extract(ctx context.Context, in memory.Extraction) ([]memory.Action, error) {
	all := make([]string, 0, len(in.Messages))
	for _, m := range in.Messages {
		all = append(all, m.Content)
	}
	related, err := in.Related(ctx, all, 10)
	if err != nil {
		return nil, err
	}
	var memories []memory.Memory
	for _, list := range related {
		memories = append(memories, list...)
	}
	return f(memories)
}

// idOf returns the ID of the memory with that text.
func idOf(memories []memory.Memory, text string) string {
	for i := range memories {
		if memories[i].Text == text {
			return memories[i].ID
		}
	}
	return ""
}
