package qdrant

import (
	"cmp"
	"context"
	"slices"
	"strings"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/memory"
)

// Get returns the memories that exist.
func (b *Backend) Get(ctx context.Context, ids []string) (found []memory.Memory, err error) {
	err = b.snapshot(ctx, func(h *head) error {
		found = nil
		for some := range slices.Chunk(ids, page) {
			q := query{must: []*api.Condition{api.NewMatchKeywords(keyID, some...)}}
			err := b.eachRecord(ctx, h, q, func(p *api.RetrievedPoint) error {
				m, err := memoryOf(p.GetPayload())
				found = append(found, m)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// Scan reads all of the scope before it calls yield, since only then it is known to be one state.
func (b *Backend) Scan(ctx context.Context, scope memory.Scope, part memory.Part, yield func(*memory.Record) bool) error {
	q := query{must: covered(scope), vectors: part == memory.Whole}
	if part == memory.Unembedded {
		q.must = append(q.must, api.NewMatchBool(keyUnembedded, true))
	}
	var records []memory.Record
	err := b.snapshot(ctx, func(h *head) (err error) {
		records, err = b.records(ctx, h, q)
		return err
	})
	if err != nil {
		return err
	}
	for i := range records {
		if !yield(&records[i]) {
			return nil
		}
	}
	return nil
}

func (b *Backend) records(ctx context.Context, h *head, q query) (records []memory.Record, err error) {
	err = b.eachRecord(ctx, h, q, func(p *api.RetrievedPoint) error {
		m, err := memoryOf(p.GetPayload())
		records = append(records, memory.Record{Memory: m, Vector: vectorOf(p), Entities: stringsOf(p.GetPayload()[keyNames])})
		return err
	})
	return records, err
}

// Follow reads all of the scope if there was a commit since.
func (b *Backend) Follow(ctx context.Context, scope memory.Scope, since int64, to memory.Changes) (memory.State, error) {
	h, err := b.head(ctx)
	if err != nil {
		return memory.State{}, err
	}
	state := func() memory.State { return memory.State{Version: h.number + 1, Space: h.space} } // the first head has the number 0
	if state().Version == since {
		return state(), nil
	}
	var records []memory.Record
	err = b.snapshot(ctx, func(now *head) (err error) {
		h = now
		records, err = b.records(ctx, h, query{must: covered(scope), vectors: true})
		return err
	})
	if err != nil {
		return memory.State{}, err
	}
	to.Reset()
	for i := range records {
		to.Put(&records[i])
	}
	return state(), nil
}

// placed is something that has a place in an order.
type placed[T any] struct {
	place string
	value T
}

// inOrder reads points of the collection of history and messages.
func inOrder[T any](ctx context.Context, b *Backend, must []*api.Condition, read func(map[string]*api.Value) T) (all []placed[T],
	err error,
) {
	err = b.snapshot(ctx, func(h *head) error {
		all = nil
		return b.each(ctx, h, query{collection: b.opts.Collection, must: must}, func(p *api.RetrievedPoint) error {
			all = append(all, placed[T]{p.GetPayload()[keyPlace].GetStringValue(), read(p.GetPayload())})
			return nil
		})
	})
	slices.SortFunc(all, func(a, b placed[T]) int { return cmp.Compare(a.place, b.place) })
	return all, err
}

// History returns a memory's revisions.
func (b *Backend) History(ctx context.Context, memoryID string) ([]memory.Revision, error) {
	rows, err := inOrder(ctx, b, []*api.Condition{api.NewMatch(keyKind, kindRevision), api.NewMatch(keyMemory, memoryID)}, revisionOf)
	out := make([]memory.Revision, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.value)
	}
	return out, err
}

// ScopeHistory walks through a scope's revisions.
func (b *Backend) ScopeHistory(ctx context.Context, scope memory.Scope, yield func(*memory.Revision) bool) error {
	rows, err := inOrder(ctx, b, covered(scope, api.NewMatch(keyKind, kindRevision)), revisionOf)
	if err != nil {
		return err
	}
	for i := range rows {
		if !yield(&rows[i].value) {
			return nil
		}
	}
	return nil
}

// Messages returns a log.
func (b *Backend) Messages(ctx context.Context, log memory.Log, last int) ([]memory.Message, error) {
	rows, err := inOrder(ctx, b, inLog(log), messageOf)
	if last > 0 && len(rows) > last {
		rows = rows[len(rows)-last:]
	}
	out := make([]memory.Message, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.value)
	}
	return out, err
}

func inLog(log memory.Log) []*api.Condition {
	return []*api.Condition{api.NewMatch(keyKind, kindMessage), api.NewMatch(keyScope, logKey(log))}
}

// byPlace compares the places of two messages.
func byPlace(a, b message) int { return strings.Compare(a.place, b.place) }
