package qdrant

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/google/uuid"
	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/memory"
)

// tx holds what a transaction has read and changed; nothing is written before its end.
type tx struct {
	b     *Backend
	head  *head
	wipe  bool
	space *memory.Space // nil: unchanged
	count int           // places given

	records map[string]*entry[memory.Record] // by ID; there is false for IDs without a record
	rows    map[string]*entry[revision]      // by the revision's ID
	rowsOf  map[string][]string              // IDs of revisions by memory, for memories that are loaded
	logs    map[memory.Log]*[]message        // logs that are loaded
	gone    []string                         // points of entries that are no more
}

// entry is a value with the point that holds it on the server.
type entry[T any] struct {
	point string // empty: none
	value T
	there bool
	dirty bool // differs from what the point holds
}

type revision struct {
	memory.Revision
	place string
}

type message struct {
	memory.Message
	point string
	place string
}

var _ memory.Tx = (*tx)(nil)

func newTx(b *Backend, h *head) *tx {
	return &tx{
		b: b, head: h, records: map[string]*entry[memory.Record]{}, rows: map[string]*entry[revision]{},
		rowsOf: map[string][]string{}, logs: map[memory.Log]*[]message{},
	}
}

// place returns what is greater than all places so far.
func (t *tx) place() string {
	t.count++
	return fmt.Sprintf("%016x%08x", t.head.number+1, t.count)
}

// load reads records into the transaction. What it knows already it knows better.
func (t *tx) load(ctx context.Context, must []*api.Condition) error {
	return t.b.eachRecord(ctx, t.head, query{must: must, vectors: true}, func(p *api.RetrievedPoint) error {
		r, err := recordOf(p)
		if err == nil && t.records[r.Memory.ID] == nil {
			t.records[r.Memory.ID] = &entry[memory.Record]{point: p.GetId().GetUuid(), there: true, value: r}
		}
		return err
	})
}

// record returns the entry of an ID, which may be one that is not there.
func (t *tx) record(ctx context.Context, id string) (*entry[memory.Record], error) {
	if t.records[id] == nil {
		if err := t.load(ctx, []*api.Condition{api.NewMatch(keyID, id)}); err != nil {
			return nil, err
		}
		if t.records[id] == nil {
			t.records[id] = &entry[memory.Record]{}
		}
	}
	return t.records[id], nil
}

// Get returns a memory.
func (t *tx) Get(ctx context.Context, id string) (memory.Memory, bool, error) {
	e, err := t.record(ctx, id)
	if err != nil || !e.there {
		return memory.Memory{}, false, err
	}
	return copied(e.value.Memory), true, nil
}

// Find returns the memory of a hash.
func (t *tx) Find(ctx context.Context, scope memory.Scope, hash string) (memory.Memory, bool, error) {
	if m, ok := t.known(scope, hash); ok {
		return m, true, nil
	}
	if err := t.load(ctx, []*api.Condition{api.NewMatch(keyScope, scopeKey(scope)), api.NewMatch(keyHash, hash)}); err != nil {
		return memory.Memory{}, false, err
	}
	m, ok := t.known(scope, hash)
	return m, ok, nil
}

func (t *tx) known(scope memory.Scope, hash string) (memory.Memory, bool) {
	for _, e := range t.records {
		if e.there && e.value.Memory.Hash == hash && e.value.Memory.Scope == scope {
			return copied(e.value.Memory), true
		}
	}
	return memory.Memory{}, false
}

// IDs returns a scope's IDs.
func (t *tx) IDs(ctx context.Context, scope memory.Scope) (ids []string, err error) {
	if err := t.load(ctx, covered(scope)); err != nil {
		return nil, err
	}
	for id, e := range t.records {
		if e.there && scope.Covers(e.value.Memory.Scope) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Put stores a record.
func (t *tx) Put(ctx context.Context, r *memory.Record) error {
	e, err := t.record(ctx, r.Memory.ID)
	if err != nil {
		return err
	}
	e.value = memory.Record{
		Memory: copied(r.Memory), Vector: slices.Clone(r.Vector), Entities: slices.Clone(r.Entities),
	}
	e.there, e.dirty = true, true
	return nil
}

// SetVector replaces a vector.
func (t *tx) SetVector(ctx context.Context, id string, vector []float32) error {
	e, err := t.record(ctx, id)
	if err != nil || !e.there {
		return err
	}
	e.value.Vector, e.dirty = slices.Clone(vector), true
	return nil
}

// Remove removes a record.
func (t *tx) Remove(ctx context.Context, id string) (bool, error) {
	e, err := t.record(ctx, id)
	if err != nil || !e.there {
		return false, err
	}
	e.value, e.there, e.dirty = memory.Record{}, false, true
	return true, nil
}

// DropVectors removes the vectors of all records, which it loads.
func (t *tx) DropVectors(ctx context.Context) error {
	ids, err := t.IDs(ctx, memory.Scope{})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := t.SetVector(ctx, id, nil); err != nil {
			return err
		}
	}
	return nil
}

// Space returns the space.
func (t *tx) Space(context.Context) (memory.Space, error) {
	if t.space != nil {
		return *t.space, nil
	}
	return t.head.space, nil
}

// SetSpace replaces the space.
func (t *tx) SetSpace(_ context.Context, space memory.Space) error {
	t.space = &space
	return nil
}

// copied returns a memory whose metadata can be changed at its top; what is deeper is replaced, not changed, within a
// transaction.
func copied(m memory.Memory) memory.Memory {
	m.Metadata = maps.Clone(m.Metadata)
	return m
}

// changed reports whether there is anything to commit.
func (t *tx) changed() bool {
	dirty := func(e *entry[memory.Record]) bool { return e.dirty }
	if t.wipe || t.space != nil || len(t.gone) > 0 || slices.ContainsFunc(slices.Collect(maps.Values(t.records)), dirty) {
		return true
	}
	for _, e := range t.rows {
		if e.dirty {
			return true
		}
	}
	for _, log := range t.logs {
		if slices.ContainsFunc(*log, func(m message) bool { return m.point == "" }) {
			return true
		}
	}
	return false
}

// lengths returns those of the vectors that are written.
func (t *tx) lengths() (lengths []int) {
	for _, e := range t.records {
		if n := len(stored(e.value.Vector)); e.dirty && e.there && !slices.Contains(lengths, n) {
			lengths = append(lengths, n)
		}
	}
	slices.Sort(lengths)
	return lengths
}

// stored returns the vector of a record's point, which cannot be without one.
func stored(vector []float32) []float32 {
	if len(vector) == 0 {
		return []float32{0}
	}
	return vector
}

// changed are the entries that differ from their points, sorted by ID; the points are added to gone.
func changed[T any](entries map[string]*entry[T], gone *[]string) iter.Seq[*entry[T]] {
	return func(yield func(*entry[T]) bool) {
		for _, id := range sortedKeys(entries) {
			e := entries[id]
			if !e.dirty {
				continue
			}
			if e.point != "" {
				*gone = append(*gone, e.point)
			}
			if !yield(e) {
				return
			}
		}
	}
}

// points returns what the transaction writes, by collection, and the points that it replaces or removes.
func (t *tx) points(next *head) (points map[string][]*api.PointStruct, gone []string, err error) {
	points, gone = map[string][]*api.PointStruct{}, slices.Clone(t.gone)
	add := func(collection string, vectors *api.Vectors, payload map[string]*api.Value) {
		payload[keyTx], payload[keyNumber] = api.NewValueString(next.commit), api.NewValueInt(next.number)
		points[collection] = append(points[collection], &api.PointStruct{
			Id: api.NewIDUUID(uuid.NewString()), Payload: payload, Vectors: vectors,
		})
	}
	for e := range changed(t.records, &gone) {
		if !e.there {
			continue
		}
		payload, err := recordPayload(&e.value)
		if err != nil {
			return nil, nil, err
		}
		vector := stored(e.value.Vector)
		add(t.b.vectors(len(vector)), api.NewVectorsDense(vector), payload)
	}
	for e := range changed(t.rows, &gone) {
		add(t.b.opts.Collection, noVectors(), revisionPayload(&e.value.Revision, e.value.place))
	}
	for log, messages := range t.logs {
		for _, m := range *messages {
			if m.point == "" {
				add(t.b.opts.Collection, noVectors(), messagePayload(log, &m.Message, m.place))
			}
		}
	}
	return points, gone, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
