package qdrant

import (
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
		r, err := recordOf(p)
		records = append(records, r)
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

// inOrder reads points of the collection of history and messages.
func inOrder[T any](
	ctx context.Context, b *Backend, must []*api.Condition, read func(map[string]*api.Value) T,
) (all []T, err error) {
	var points []*api.RetrievedPoint
	err = b.snapshot(ctx, func(h *head) error {
		points = nil
		return b.each(ctx, h, query{collection: b.opts.Collection, must: must}, func(p *api.RetrievedPoint) error {
			points = append(points, p)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(points, func(a, b *api.RetrievedPoint) int {
		return strings.Compare(a.GetPayload()[keyPlace].GetStringValue(), b.GetPayload()[keyPlace].GetStringValue())
	})
	all = make([]T, len(points))
	for i, p := range points {
		all[i] = read(p.GetPayload())
	}
	return all, nil
}

// History returns a memory's revisions.
func (b *Backend) History(ctx context.Context, memoryID string) ([]memory.Revision, error) {
	return inOrder(ctx, b, []*api.Condition{api.NewMatch(keyKind, kindRevision), api.NewMatch(keyMemory, memoryID)}, revisionOf)
}

// ScopeHistory walks through a scope's revisions.
func (b *Backend) ScopeHistory(ctx context.Context, scope memory.Scope, yield func(*memory.Revision) bool) error {
	rows, err := inOrder(ctx, b, covered(scope, api.NewMatch(keyKind, kindRevision)), revisionOf)
	for i := range rows {
		if !yield(&rows[i]) {
			break
		}
	}
	return err
}

// Messages returns a log.
func (b *Backend) Messages(ctx context.Context, log memory.Log, last int) ([]memory.Message, error) {
	rows, err := inOrder(ctx, b, inLog(log), messageOf)
	if last > 0 && len(rows) > last {
		rows = rows[len(rows)-last:]
	}
	return rows, err
}

func inLog(log memory.Log) []*api.Condition {
	return []*api.Condition{api.NewMatch(keyKind, kindMessage), api.NewMatch(keyScope, logKey(log))}
}

// byPlace compares the places of two messages.
func byPlace(a, b message) int { return strings.Compare(a.place, b.place) }
