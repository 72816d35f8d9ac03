package qdrant

import (
	"context"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/memory"
)

// loadRows reads revisions into the transaction. What it knows already it knows better.
func (t *tx) loadRows(ctx context.Context, must []*api.Condition) error {
	q := query{collection: t.b.opts.Collection, must: append(must, api.NewMatch(keyKind, kindRevision))}
	return t.b.each(ctx, t.head, q, func(p *api.RetrievedPoint) error {
		r := revision{revisionOf(p.GetPayload()), p.GetPayload()[keyPlace].GetStringValue()}
		if t.rows[r.ID] == nil {
			t.keepRow(&entry[revision]{point: p.GetId().GetUuid(), value: r, there: true})
		}
		return nil
	})
}

func (t *tx) keepRow(e *entry[revision]) {
	t.rows[e.value.ID] = e
	t.rowsOf[e.value.MemoryID] = append(t.rowsOf[e.value.MemoryID], e.value.ID)
}

// Append writes a row of history.
func (t *tx) Append(ctx context.Context, r *memory.Revision) (bool, error) {
	if t.rows[r.ID] == nil {
		if err := t.loadRows(ctx, []*api.Condition{api.NewMatch(keyID, r.ID)}); err != nil {
			return false, err
		}
	}
	if t.rows[r.ID] != nil {
		return false, nil
	}
	t.keepRow(&entry[revision]{value: revision{*r, t.place()}, there: true, dirty: true})
	return true, nil
}

// Erase blanks the rows of a memory.
func (t *tx) Erase(ctx context.Context, memoryID string) (erased int, err error) {
	if err := t.loadRows(ctx, []*api.Condition{api.NewMatch(keyMemory, memoryID)}); err != nil {
		return 0, err
	}
	for _, id := range t.rowsOf[memoryID] {
		erased += t.blank(t.rows[id])
	}
	return erased, nil
}

// EraseScope blanks the rows of a scope.
func (t *tx) EraseScope(ctx context.Context, scope memory.Scope) (erased int, err error) {
	if err := t.loadRows(ctx, covered(scope)); err != nil {
		return 0, err
	}
	for _, e := range t.rows {
		if scope.Covers(e.value.Scope) {
			erased += t.blank(e)
		}
	}
	return erased, nil
}

// blank takes the texts from a row and returns how many rows had one.
func (t *tx) blank(e *entry[revision]) int {
	if e.value.Old == "" && e.value.New == "" {
		return 0
	}
	e.value.Old, e.value.New, e.dirty = "", "", true
	return 1
}
