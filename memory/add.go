package memory

import (
	"context"
	"slices"
	"time"
)

// Kinds of logs.
const (
	chatLog   = "chat"   // what AppendMessages keeps
	recentLog = "recent" // what a Windowed extractor sees
)

// Add extracts and stores.
func (l *Local) Add(ctx context.Context, scope Scope, messages []Message, opts AddOptions) (_ []Change, err error) {
	defer named("add", &err)
	if err := scope.Validate(); err != nil {
		return nil, err
	}
	metadata, err := cleanMetadata(opts.Metadata)
	if err != nil {
		return nil, err
	}
	leave, err := l.adding.enter(ctx, scope)
	if err != nil {
		return nil, err
	}
	defer leave()
	messages = cleanMessages(messages)
	a := adding{
		local: l, scope: scope, metadata: metadata, expires: stored(opts.ExpiresAt),
	}
	actions, window, err := l.actions(ctx, scope, messages, opts)
	if err != nil {
		return nil, err
	}
	if err := a.embed(ctx, actions); err != nil {
		return nil, err
	}
	a.now = l.moment()
	err = l.backend.Change(ctx, func(tx Tx) error {
		a.changes = []Change{} // the backend may have to run a transaction again
		if err := a.apply(ctx, tx); err != nil {
			return err
		}
		if window <= 0 || len(messages) == 0 {
			return nil
		}
		return tx.AppendMessages(ctx, Log{Scope: scope, Kind: recentLog}, messages, window)
	})
	if err != nil {
		return nil, err
	}
	return a.changes, nil
}

// actions asks the extractor. window is how many messages it wants to be kept.
func (l *Local) actions(ctx context.Context, scope Scope, messages []Message, opts AddOptions) (actions []Action, window int, err error) {
	extractor := opts.Extractor
	if extractor == nil {
		extractor = l.extract
	}
	seen := map[string]bool{} // IDs that the extractor was shown
	in := Extraction{
		Scope: scope, Messages: slices.Clone(messages), Instructions: opts.Instructions,
		Related: func(ctx context.Context, texts []string, k int) ([][]Memory, error) {
			related, err := l.related(ctx, scope, texts, k)
			for _, list := range related {
				for _, m := range list {
					seen[m.ID] = true
				}
			}
			return related, err
		},
	}
	if w, ok := extractor.(Windowed); ok {
		if window = w.Window(); window > 0 {
			in.Recent, err = l.backend.Messages(ctx, Log{Scope: scope, Kind: recentLog}, window)
			if err != nil {
				return nil, 0, err
			}
		}
	}
	actions, err = extractor.Extract(ctx, in)
	if err != nil {
		return nil, 0, err
	}
	return usable(actions, seen), window, nil
}

// usable returns the actions that say something, with texts that can be stored.
func usable(actions []Action, seen map[string]bool) []Action {
	out := make([]Action, 0, len(actions))
	for _, act := range actions {
		act.Text = clean(act.Text)
		ok := false
		switch act.Event {
		case Added:
			ok = act.Text != ""
		case Updated:
			ok = act.Text != "" && seen[act.ID]
		case Deleted:
			ok = seen[act.ID]
		}
		if ok {
			out = append(out, act)
		}
	}
	return out
}

// adding is one Add on its way.
type adding struct {
	local    *Local
	scope    Scope
	metadata map[string]any
	expires  time.Time
	now      time.Time
	actions  []Action
	records  []Record // by action, with vector and terms; nothing else is filled
	changes  []Change
	bare     bool // vectors are left out
}

// embed makes the vectors of all texts at once.
func (a *adding) embed(ctx context.Context, actions []Action) error {
	a.actions, a.records = actions, make([]Record, len(actions))
	var texts []string
	var at []int
	for i, act := range actions {
		if act.Text != "" && act.Event != Deleted {
			texts, at = append(texts, act.Text), append(at, i)
		}
	}
	vectors, err := a.local.vectors(ctx, texts)
	if err != nil {
		return err
	}
	for j, i := range at {
		a.records[i] = Record{
			Vector: vectors[j], Entities: a.local.entities(actions[i].Entities, texts[j]),
		}
	}
	return nil
}

func (a *adding) apply(ctx context.Context, tx Tx) error {
	a.bare = false
	for i := range a.records {
		if len(a.records[i].Vector) > 0 {
			keep, err := a.local.agreed(ctx, tx, a.records[i].Vector)
			if err != nil {
				return err
			}
			a.bare = !keep
			break // the others are as long
		}
	}
	for i := range a.actions {
		var err error
		switch a.actions[i].Event {
		case Added:
			err = a.insert(ctx, tx, i)
		case Updated:
			err = a.update(ctx, tx, i)
		case Deleted:
			err = a.remove(ctx, tx, a.actions[i].ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// insert stores a new text. One that the scope has is not stored again; if that one has expired it is brought back.
func (a *adding) insert(ctx context.Context, tx Tx, i int) error {
	act := a.actions[i]
	old, ok, err := tx.Find(ctx, a.scope, HashOf(act.Text))
	if err != nil {
		return err
	}
	if ok && !old.Expired(a.now) {
		a.did(None, &old, "")
		return nil
	}
	r := a.records[i]
	event := Added
	if ok {
		event, r.Memory = Updated, old
	} else {
		r.Memory = Memory{ID: a.local.newID(), Text: act.Text, Hash: HashOf(act.Text), Scope: a.scope, CreatedAt: a.now}
	}
	r.Memory.Role, r.Memory.Actor = clean(act.Role), clean(act.Actor)
	r.Memory.Metadata, r.Memory.ExpiresAt, r.Memory.UpdatedAt = a.metadata, a.expires, a.now
	return a.put(ctx, tx, event, &r, old.Text)
}

// update gives a memory another text. If another memory of its scope has that text, the one to be updated is one too
// many and goes; one that has expired goes instead.
func (a *adding) update(ctx context.Context, tx Tx, i int) error {
	act := a.actions[i]
	old, ok, err := tx.Get(ctx, act.ID)
	if err != nil {
		return err
	}
	if !ok { // removed since the extractor saw it: what it was to become is still worth remembering
		return a.insert(ctx, tx, i)
	}
	if old.Text == act.Text {
		a.did(None, &old, "")
		return nil
	}
	switch other, taken, err := tx.Find(ctx, old.Scope, HashOf(act.Text)); {
	case err != nil:
		return err
	case taken && other.Expired(a.now): // no search finds it any more: this one replaces it
		if err := a.remove(ctx, tx, other.ID); err != nil {
			return err
		}
	case taken:
		return a.remove(ctx, tx, old.ID)
	}
	r := a.records[i]
	r.Memory = old
	r.Memory.Text, r.Memory.Hash, r.Memory.UpdatedAt = act.Text, HashOf(act.Text), a.now
	if len(a.metadata) > 0 {
		r.Memory.Metadata = a.metadata
	}
	if !a.expires.IsZero() {
		r.Memory.ExpiresAt = a.expires
	}
	return a.put(ctx, tx, Updated, &r, old.Text)
}

// remove takes away a memory that is not true any more; its history keeps the text.
func (a *adding) remove(ctx context.Context, tx Tx, id string) error {
	old, ok, err := tx.Get(ctx, id)
	if err != nil || !ok {
		return err
	}
	if _, err := tx.Remove(ctx, id); err != nil {
		return err
	}
	a.did(Deleted, &old, "")
	return a.local.write(ctx, tx, Deleted, &old, old.Text, "", a.now)
}

func (a *adding) put(ctx context.Context, tx Tx, event Event, r *Record, old string) error {
	if a.bare {
		r.Vector = nil
	}
	if err := tx.Put(ctx, r); err != nil {
		return err
	}
	a.did(event, &r.Memory, old)
	return a.local.write(ctx, tx, event, &r.Memory, old, r.Memory.Text, a.now)
}

func (a *adding) did(event Event, m *Memory, old string) {
	a.changes = append(a.changes, Change{ID: m.ID, Event: event, Text: m.Text, Old: old})
}

// write adds a row to the history of a memory.
func (l *Local) write(ctx context.Context, tx Tx, event Event, m *Memory, old, text string, at time.Time) error {
	_, err := tx.Append(ctx, &Revision{
		ID: l.newID(), MemoryID: m.ID, Event: event, Scope: m.Scope, Old: old, New: text, Role: m.Role, Actor: m.Actor, At: at,
	})
	return err
}
