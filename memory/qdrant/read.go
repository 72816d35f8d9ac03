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
	q := query{must: covered(scope), vectors: part != memory.Memories}
	if part == memory.Vectors {
		q.fields = []string{keyID, keyCreated, keyExpires, keyNames}
	}
	var records []memory.Record
	err := b.snapshot(ctx, func(h *head) error {
		records = records[:0]
		return b.eachRecord(ctx, h, q, func(p *api.RetrievedPoint) error {
			m, err := memoryOf(p.GetPayload())
			records = append(records, memory.Record{Memory: m, Vector: vectorOf(p), Entities: stringsOf(p.GetPayload()[keyNames])})
			return err
		})
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

// Lexicon asks the index of terms for the postings, and all of the scope for the sums.
func (b *Backend) Lexicon(ctx context.Context, scope memory.Scope, terms []string) (lex memory.Lexicon, err error) {
	err = b.snapshot(ctx, func(h *head) error {
		lex = memory.Lexicon{}
		err := b.eachRecord(ctx, h, query{must: covered(scope), fields: []string{keyCount}}, func(p *api.RetrievedPoint) error {
			lex.Memories++
			lex.Terms += int(p.GetPayload()[keyCount].GetIntegerValue())
			return nil
		})
		if err != nil || len(terms) == 0 {
			return err
		}
		q := query{must: covered(scope, api.NewMatchKeywords(keyTerms, terms...)), fields: []string{keyID, keyTerms, keyWords}}
		return b.eachRecord(ctx, h, q, func(p *api.RetrievedPoint) error {
			lex.Postings = append(lex.Postings, memory.Posting{
				ID: p.GetPayload()[keyID].GetStringValue(), Terms: termsOf(p.GetPayload()),
			})
			return nil
		})
	})
	return lex, err
}

// placed is something that has a place in an order.
type placed[T any] struct {
	place string
	value T
}

// inOrder reads points of the collection of history and messages.
func inOrder[T any](ctx context.Context, b *Backend, must []*api.Condition, read func(map[string]*api.Value) T) (all []placed[T], err error) {
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

// Space records the first space.
func (b *Backend) Space(ctx context.Context, space memory.Space) (memory.Space, error) {
	err := b.Change(ctx, func(t memory.Tx) error {
		if have := t.(*tx).head.space; have.Dimensions > 0 {
			space = have
			return nil
		}
		return t.SetSpace(ctx, space)
	})
	return space, err
}

// byPlace compares the places of two messages.
func byPlace(a, b message) int { return strings.Compare(a.place, b.place) }
