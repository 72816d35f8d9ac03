package memorytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/memory"
)

func checkScopeRequired(b *bench) {
	for name, call := range map[string]func() error{
		"Add": func() error { _, err := b.store.Add(b.ctx, memory.Scope{}, said("a"), memory.AddOptions{}); return err },
		"Search": func() error {
			_, err := b.store.Search(b.ctx, memory.Scope{}, "a", 1, memory.SearchOptions{})
			return err
		},
		"GetAll":    func() error { _, err := b.store.GetAll(b.ctx, memory.Scope{}, memory.ListOptions{}); return err },
		"DeleteAll": func() error { _, err := b.store.DeleteAll(b.ctx, memory.Scope{}, memory.DeleteOptions{}); return err },
	} {
		if err := call(); !errors.Is(err, memory.ErrNoScope) {
			b.Errorf("%s without a scope = %v, want ErrNoScope", name, err)
		}
	}
}

func checkScopes(b *bench) {
	b.add(memory.Scope{User: "ana"}, "Ana likes tea.")
	b.add(memory.Scope{User: "ana", Agent: "cook"}, "Ana eats no meat.")
	b.add(memory.Scope{User: "ana", Run: "7"}, "Ana is in Rome.")
	b.add(memory.Scope{User: "bo", Agent: "cook"}, "Bo eats all.")
	for _, c := range []struct {
		scope memory.Scope
		want  []string
	}{
		{memory.Scope{User: "ana"}, []string{"Ana likes tea.", "Ana eats no meat.", "Ana is in Rome."}},
		{memory.Scope{Agent: "cook"}, []string{"Ana eats no meat.", "Bo eats all."}},
		{memory.Scope{Run: "7"}, []string{"Ana is in Rome."}},
		{memory.Scope{User: "bo", Agent: "cook"}, []string{"Bo eats all."}},
		{memory.Scope{User: "bo", Run: "7"}, []string{}},
		{memory.Scope{User: "an"}, []string{}},
		{memory.Scope{Agent: "ana"}, []string{}},
	} {
		if diff := cmp.Diff(c.want, texts(b.all(c.scope))); diff != "" {
			b.Errorf("GetAll(%+v): %s", c.scope, diff)
		}
		hits := found(b.search(c.scope, "Ana Bo eats likes", memory.SearchOptions{}))
		slices.Sort(hits)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, hits); diff != "" {
			b.Errorf("Search(%+v): %s", c.scope, diff)
		}
	}
}

func checkVerbatim(b *bench) {
	changes, err := b.store.Add(b.ctx, user("ana"), []memory.Message{
		{Role: memory.System, Content: "Be kind."},
		{Role: memory.User, Content: "I live in Oslo.", Name: "ana"},
		{Role: memory.User, Content: " \n"},
		{Role: memory.Assistant, Content: "Noted."},
	}, memory.AddOptions{Extractor: memory.Everything{}})
	b.must(err)
	all := b.all(user("ana"))
	if diff := cmp.Diff([]string{"I live in Oslo.", "Noted."}, texts(all)); diff != "" {
		b.Fatal(diff)
	}
	want := []memory.Change{
		{ID: all[0].ID, Event: memory.Added, Text: "I live in Oslo."},
		{ID: all[1].ID, Event: memory.Added, Text: "Noted."},
	}
	b.equal("changes", want, changes)
	if all[0].Role != "user" || all[0].Actor != "ana" || all[1].Role != "assistant" {
		b.Errorf("roles %q (%q), %q", all[0].Role, all[0].Actor, all[1].Role)
	}
	changes, err = b.store.Add(b.ctx, user("ben"), []memory.Message{
		{Role: memory.User, Content: "Hi! I keep bees. Where do I live?"},
		{Role: memory.Assistant, Content: "You live in Oslo."},
		{Role: memory.User, Content: "ok thanks"},
	}, memory.AddOptions{Extractor: memory.Verbatim{}})
	if err != nil || len(changes) != 1 {
		b.Errorf("a statement, a question and thanks = %+v, %v", changes, err)
	}
	b.equal("texts", []string{"I keep bees."}, texts(b.all(user("ben"))))
	nothing, err := b.store.Add(b.ctx, user("ana"), nil, memory.AddOptions{})
	if err != nil || len(nothing) != 0 {
		b.Errorf("Add of nothing = %v, %v", nothing, err)
	}
}

func checkRepeats(b *bench) {
	id := b.add(user("ana"), "I live in Oslo.", " I live in Oslo.\n")[0]
	changes, err := b.store.Add(b.ctx, user("ana"), said("I live in Oslo."), memory.AddOptions{})
	b.must(err)
	for _, c := range changes {
		if c.Event != memory.None {
			b.Errorf("a repeat was reported as %+v", c)
		}
	}
	if n := len(b.all(user("ana"))); n != 1 {
		b.Errorf("%d memories of one text", n)
	}
	if n := len(b.history(id)); n != 1 {
		b.Errorf("%d rows of history for one change", n)
	}
	b.add(user("bo"), "I live in Oslo.")
	b.add(memory.Scope{User: "ana", Run: "7"}, "I live in Oslo.")
	if n := len(b.all(user("ana"))) + len(b.all(user("bo"))); n != 3 {
		b.Errorf("%d memories in three scopes", n)
	}
}

func checkFields(b *bench) {
	scope := memory.Scope{User: "ana", Agent: "cook", Run: "7"}
	expires := b.clock.Now().Add(time.Hour + 123456789*time.Nanosecond)
	metadata := map[string]any{
		"n": 3, "half": 0.5, "on": true, "list": []string{"a", "b"}, "deep": map[string]any{"x": nil},
		"t": "2026-01-02",
	}
	before := b.clock.Now()
	id := b.addWith(scope, memory.AddOptions{Metadata: metadata, ExpiresAt: expires}, "I live in Oslo.")[0]
	m := b.get(id)
	if m.CreatedAt.Before(before) || !m.CreatedAt.Equal(m.UpdatedAt) || m.CreatedAt.Location() != time.UTC {
		b.Errorf("created %v, updated %v, not after %v", m.CreatedAt, m.UpdatedAt, before)
	}
	want := memory.Memory{
		ID: id, Text: "I live in Oslo.", Hash: memory.HashOf("I live in Oslo."), Scope: scope, Role: "user",
		Metadata: map[string]any{
			"n": 3.0, "half": 0.5, "on": true, "list": []any{"a", "b"}, "deep": map[string]any{"x": nil}, "t": "2026-01-02",
		},
		CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, ExpiresAt: expires.UTC().Truncate(time.Microsecond),
	}
	b.equal("the result", want, m)
	b.equal("GetAll", []memory.Memory{want}, b.all(scope))
	hits := b.search(scope, "Oslo", memory.SearchOptions{})
	if len(hits) != 1 || !cmp.Equal(hits[0].Memory, want) {
		b.Errorf("Search: %+v", hits)
	}
	wantHistory := []memory.Revision{{
		MemoryID: id, Event: memory.Added, Scope: scope, New: "I live in Oslo.", Role: "user", At: m.CreatedAt,
	}}
	history := b.history(id)
	for i := range history {
		history[i].ID = ""
	}
	b.equal("History", wantHistory, history)
}

func checkOddTexts(b *bench) {
	for i, text := range []string{
		"zero\x00byte", "not\xffUTF-8", "'; DROP TABLE memories; --", `"quoted" OR NEAR(x)`, "%_?$1*", "日本語のメモ", "naïve café",
		"*", "()", "👩‍👩‍👧 emoji", "line\nfeed\ttab", "<doc x>\nmarkup\n</doc>",
	} {
		scope := user(fmt.Sprint("u", i, "'\"; --"))
		id := b.add(scope, text)[0]
		m := b.get(id)
		if m.Text == "" || m.Hash != memory.HashOf(m.Text) {
			b.Errorf("%q became %q with hash %s", text, m.Text, m.Hash)
		}
		if hits := b.search(scope, text, memory.SearchOptions{}); len(hits) != 1 || hits[0].Memory.ID != id {
			b.Errorf("%q does not find itself: %+v", text, hits)
		}
		again := b.add(scope, text)
		if n := len(b.all(scope)); n != 1 {
			b.Errorf("%q added twice is %d memories (%v)", text, n, again)
		}
	}
	for _, bad := range []memory.Scope{{User: "a\x00"}, {User: "\xff"}, {Run: string(make([]byte, 4096))}} {
		b.fails("a scope that cannot be stored", errorOf(b.store.Add(b.ctx, bad, said("a"), memory.AddOptions{})), memory.ErrInvalid)
	}
	b.fails("metadata that cannot be stored",
		errorOf(b.store.Add(b.ctx, user("a"), said("a"), memory.AddOptions{Metadata: map[string]any{"f": func() {}}})), memory.ErrInvalid)
}

// checkLargeText: 10 MiB come back whole, and so does a word of 100 KiB, as encoded pictures are; both are found.
func checkLargeText(b *bench) {
	if testing.Short() {
		b.Skip("stores 10 MiB")
	}
	const sentence = "The heron stands in the reeds and waits for fish. "
	for name, text := range map[string]string{
		"sentences": strings.TrimSpace(strings.Repeat(sentence, 10<<20/len(sentence))),
		"one word":  strings.Repeat("heron", 100<<10/5),
	} {
		id := b.add(user(name), text)[0]
		if m := b.get(id); m.Text != text {
			b.Errorf("%s: %d bytes came back of %d", name, len(m.Text), len(text))
		}
		if hits := b.search(user(name), text[:100<<10], memory.SearchOptions{}); len(hits) != 1 || hits[0].Memory.ID != id {
			b.Errorf("%s: a query of 100 KiB finds %d memories", name, len(hits))
		}
	}
}

// checkEmpty: a store that nothing was put into finds nothing, and says no error.
func checkEmpty(b *bench) {
	if hits := b.search(user("ana"), "heron", memory.SearchOptions{}); len(hits) != 0 {
		b.Errorf("an empty store finds %q", found(hits))
	}
	if all := b.all(user("ana")); len(all) != 0 {
		b.Errorf("an empty store has %q", texts(all))
	}
	if n, err := b.store.DeleteAll(b.ctx, user("ana"), memory.DeleteOptions{}); n != 0 || err != nil {
		b.Errorf("DeleteAll of an empty store: %d, %v", n, err)
	}
}

func checkNotFound(b *bench) {
	text := "a"
	for _, id := range []string{"", "no-such-memory", "00000000-0000-0000-0000-000000000000", "' OR 1=1 --"} {
		_, get := b.store.Get(b.ctx, id)
		_, update := b.store.Update(b.ctx, id, memory.Update{Text: &text})
		_, history := b.store.History(b.ctx, id)
		for name, err := range map[string]error{
			"Get": get, "Update": update, "History": history, "Delete": b.store.Delete(b.ctx, id, memory.DeleteOptions{}),
		} {
			if !errors.Is(err, memory.ErrNotFound) {
				b.Errorf("%s(%q) = %v, want ErrNotFound", name, id, err)
			}
		}
	}
}

func checkUpdate(b *bench) {
	id := b.addWith(user("ana"), memory.AddOptions{Metadata: map[string]any{"a": 1}}, "I live in Oslo.")[0]
	old := b.get(id)
	text, expires := " I live in Bergen. ", b.clock.Now().Add(time.Hour)
	m, err := b.store.Update(b.ctx, id, memory.Update{Text: &text})
	b.must(err)
	want := old
	want.Text, want.Hash, want.UpdatedAt = "I live in Bergen.", memory.HashOf("I live in Bergen."), m.UpdatedAt
	if diff := cmp.Diff(want, m); diff != "" || !m.UpdatedAt.After(old.UpdatedAt) {
		b.Errorf("text: %s, updated %v after %v", diff, m.UpdatedAt, old.UpdatedAt)
	}
	b.must(errorOf(b.store.Update(b.ctx, id, memory.Update{Metadata: map[string]any{}, ExpiresAt: &expires})))
	m = b.get(id)
	if len(m.Metadata) != 0 || !m.ExpiresAt.Equal(expires.Truncate(time.Microsecond)) || m.Text != want.Text {
		b.Errorf("metadata and expiry: %+v", m)
	}
	never := time.Time{}
	if m, err = b.store.Update(b.ctx, id, memory.Update{ExpiresAt: &never}); err != nil || !m.ExpiresAt.IsZero() {
		b.Errorf("expiry taken away: %v, %v", m.ExpiresAt, err)
	}
	rows := b.history(id)
	if len(rows) != 4 || rows[1].Event != memory.Updated || rows[1].Old != "I live in Oslo." || rows[1].New != "I live in Bergen." {
		b.Errorf("history %+v", rows)
	}
	hits := b.search(user("ana"), "Bergen", memory.SearchOptions{})
	if len(hits) != 1 || hits[0].Lexical == 0 {
		b.Errorf("the new text is not found: %+v", hits)
	}
	hits = b.search(user("ana"), "Oslo", memory.SearchOptions{})
	if len(hits) != 1 || hits[0].Lexical != 0 {
		b.Errorf("the old text is still found: %+v", hits)
	}
}

func checkUpdateRefused(b *bench) {
	ids := b.add(user("ana"), "I live in Oslo.", "I live in Bergen.")
	taken, empty := "I live in Oslo.", " "
	b.fails("a text that is taken", errorOf(b.store.Update(b.ctx, ids[1], memory.Update{Text: &taken})), memory.ErrExists)
	b.fails("an empty text", errorOf(b.store.Update(b.ctx, ids[1], memory.Update{Text: &empty})), memory.ErrEmptyText)
	if m := b.get(ids[1]); m.Text != "I live in Bergen." {
		b.Errorf("a refused update changed the text to %q", m.Text)
	}
	if n := len(b.history(ids[1])); n != 1 {
		b.Errorf("refused updates left %d rows of history, want 1", n)
	}
}

func checkDelete(b *bench) {
	ids := b.add(user("ana"), "I live in Oslo.", "I like tea.")
	b.update(ids[0], "I live in Bergen.")
	b.must(b.store.Delete(b.ctx, ids[0], memory.DeleteOptions{}))
	b.fails("Get of a deleted memory", errorOf(b.store.Get(b.ctx, ids[0])), memory.ErrNotFound)
	b.equal("texts", []string{"I like tea."}, texts(b.all(user("ana"))))
	if hits := found(b.search(user("ana"), "Bergen Oslo", memory.SearchOptions{})); !slices.Equal(hits, []string{"I like tea."}) {
		b.Errorf("found %q", hits)
	}
	b.equal("events", []memory.Event{memory.Added, memory.Updated, memory.Deleted}, b.erased(ids[0]))
	b.fails("Delete again", b.store.Delete(b.ctx, ids[0], memory.DeleteOptions{}), memory.ErrNotFound)
	if again := b.add(user("ana"), "I live in Bergen."); len(again) != 1 || again[0] == ids[0] {
		b.Errorf("a deleted text cannot be added again: %v", again)
	}
}

func checkDeleteKeepsHistory(b *bench) {
	id := b.add(user("ana"), "I live in Oslo.")[0]
	b.must(b.store.Delete(b.ctx, id, memory.DeleteOptions{KeepHistory: true}))
	rows := b.history(id)
	if len(rows) != 2 || rows[0].New != "I live in Oslo." || rows[1].Old != "I live in Oslo." || rows[1].New != "" {
		b.Errorf("history %+v", rows)
	}
	if err := b.store.Delete(b.ctx, id, memory.DeleteOptions{}); err != nil { // now the rest
		b.Fatal(err)
	}
	b.erased(id)
}

func checkDeleteAll(b *bench) {
	gone := b.add(user("ana"), "I live in Oslo.")[0]
	b.must(b.store.Delete(b.ctx, gone, memory.DeleteOptions{KeepHistory: true}))
	ids := b.add(memory.Scope{User: "ana", Run: "7"}, "I like tea.", "I like cake.")
	other := b.add(user("bo"), "I like tea.")[0]
	n, err := b.store.DeleteAll(b.ctx, user("ana"), memory.DeleteOptions{})
	if err != nil || n != 2 {
		b.Errorf("DeleteAll = %d, %v; want 2", n, err)
	}
	if left := b.all(user("ana")); len(left) != 0 {
		b.Errorf("left: %q", texts(left))
	}
	for _, id := range append(ids, gone) {
		b.erased(id)
	}
	if m := b.get(other); m.Text != "I like tea." || b.history(other)[0].New != "I like tea." {
		b.Errorf("another user's memory was touched: %+v", m)
	}
	if n, err := b.store.DeleteAll(b.ctx, user("ana"), memory.DeleteOptions{}); err != nil || n != 0 {
		b.Errorf("DeleteAll of nothing = %d, %v", n, err)
	}
}

// checkGetMany: what there is comes in the order of GetAll, and each memory once.
func checkGetMany(b *bench) {
	getter, ok := b.store.(memory.Getter)
	if !ok {
		b.Skip("the store is no memory.Getter")
	}
	expired := b.addWith(user("ana"), memory.AddOptions{ExpiresAt: b.clock.Now().Add(time.Hour)}, "I am in Rome today.")[0]
	ids := append(b.add(user("ana"), "I live in Oslo.", "I drink tea."), expired)
	b.add(user("ana"), "I am not asked for.")
	b.clock.advance(2 * time.Hour)
	ids = append(ids, ids[1], "unknown", "")
	given := slices.Clone(ids)
	for name, test := range map[string]struct {
		opts memory.ListOptions
		want []string
	}{
		"usual":   {memory.ListOptions{}, []string{"I live in Oslo.", "I drink tea."}},
		"expired": {memory.ListOptions{Expired: true}, []string{"I am in Rome today.", "I live in Oslo.", "I drink tea."}},
		"filter":  {memory.ListOptions{Filter: memory.Where("text", memory.OpIcontains, "TEA")}, []string{"I drink tea."}},
		"limit":   {memory.ListOptions{Limit: 1}, []string{"I live in Oslo."}},
	} {
		got, err := getter.GetMany(b.ctx, ids, test.opts)
		if diff := cmp.Diff(test.want, texts(got)); err != nil || diff != "" {
			b.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if !slices.Equal(ids, given) {
		b.Error("the caller's IDs were changed")
	}
	if got, err := getter.GetMany(b.ctx, nil, memory.ListOptions{}); err != nil || len(got) != 0 {
		b.Errorf("no IDs: %d memories, %v", len(got), err)
	}
	b.fails("a filter that is not one",
		errorOf(getter.GetMany(b.ctx, ids, memory.ListOptions{Filter: memory.Where("text", "no operator", 1)})), memory.ErrBadFilter)
}

func checkExpiry(b *bench) {
	expires := b.clock.Now().Add(time.Hour)
	id := b.addWith(user("ana"), memory.AddOptions{ExpiresAt: expires}, "I am in Rome today.")[0]
	b.add(user("ana"), "I live in Oslo.")
	visible := func() int {
		return len(b.all(user("ana"))) + len(b.search(user("ana"), "Rome", memory.SearchOptions{}))
	}
	if n := visible(); n != 4 {
		b.Errorf("%d seen before the expiry, want 4", n)
	}
	b.clock.advance(2 * time.Hour)
	if n := visible(); n != 2 {
		b.Errorf("%d seen after the expiry, want 2", n)
	}
	all, err := b.store.GetAll(b.ctx, user("ana"), memory.ListOptions{Expired: true})
	if err != nil || len(all) != 2 {
		b.Errorf("asked for, %d listed, %v", len(all), err)
	}
	if hits := b.search(user("ana"), "Rome", memory.SearchOptions{Expired: true}); len(hits) != 2 {
		b.Errorf("asked for, %d found", len(hits))
	}
	if m := b.get(id); !m.Expired(b.clock.Now()) {
		b.Errorf("Get of an expired memory: %+v", m)
	}
	changes, err := b.store.Add(b.ctx, user("ana"), said("I am in Rome today."), memory.AddOptions{})
	if err != nil || len(changes) != 1 || changes[0].Event != memory.Updated || changes[0].ID != id {
		b.Errorf("said again: %+v, %v; want an update of %s", changes, err, id)
	}
	if n := visible(); n != 4 {
		b.Errorf("%d seen after it was said again, want 4", n)
	}
}
