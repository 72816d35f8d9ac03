// Package state keeps on disk what a sidecar must know after a restart: which orders it has chosen, so that the bytes of
// running conversations stay as they are, and which prompts it has sent, so that it knows what the engine's cache still
// holds. References need nothing of it: they follow from each body alone.
//
// Everything is a list of records in one SQLite file: a killed process loses nothing that was answered. What cannot be
// written is logged and costs a cache miss after the next restart, never an answer.
package state

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
)

// maxRecords and maxBytes bound what is kept: planning that many prompts again takes about two seconds.
const maxRecords, maxBytes = 40_000, 128 << 20

// record is one note; one of the fields is set.
type record struct {
	Order *order    `json:"o,omitempty"`
	Plan  *plan     `json:"p,omitempty"`
	Gone  *plan     `json:"g,omitempty"` // without blocks
	Clear *clearing `json:"c,omitempty"`
	// Forget is a tenant: nothing that was noted of it before counts any more.
	Forget *string `json:"f,omitempty"`
}

type order struct {
	Tenant string `json:"t,omitempty"`
	Key    string `json:"k"`
	Order  []int  `json:"o"`
}

type plan struct {
	ID     string             `json:"id"`
	Scope  contextpilot.Scope `json:"s"`
	Blocks []block            `json:"b,omitempty"`
	// Fixed says that the blocks were sent as they stand here, without being ordered.
	Fixed bool `json:"x,omitempty"`
	// Sent is the order in which they were sent otherwise; without it, that in which they would be planned again.
	Sent []int `json:"o,omitempty"`
}

type block struct {
	ID     string `json:"i"`
	Tokens int    `json:"n"`
}

// clearing is that the engines of some models hold nothing of what was noted before.
type clearing struct {
	Models []string `json:"m,omitempty"` // none: all
}

// State is an open state. Safe for concurrent use after Restore.
type State struct {
	notes   *notes
	damages atomic.Int64
	log     *slog.Logger
	failed  atomic.Int64
}

// Open opens the state of a directory, which no other process may use at the same time.
func Open(dir string, log *slog.Logger) (*State, error) {
	n, aside, err := openNotes(dir, maxRecords, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	s := &State{notes: n, log: log}
	if aside != nil {
		s.damages.Store(1)
		log.Warn("state cannot be read and is set aside: conversations that run are planned again",
			"file", fileName, "renamed", fileName+asideSuffix, "error", aside)
	}
	return s, nil
}

// Restored says what came back.
type Restored struct{ Orders, Plans, Skipped int }

// Restore fills a memory of orders and plans all prompts again, in the order in which they were sent. It must be called
// once, before anything is noted.
func (s *State) Restore(mem orders.Store, pilot *contextpilot.Pilot) (Restored, error) {
	var out Restored
	damaged, err := s.notes.each(func(text []byte) { out.read(text, mem, pilot) })
	if err != nil {
		return out, fmt.Errorf("state: %w", err)
	}
	if damaged > 0 {
		s.damages.Add(int64(damaged))
		s.log.Warn("state is damaged: what stood there is lost, all else is kept; conversations whose order is lost are planned again, "+
			"and what a lost note forgot may be known again", "file", fileName, "damages", damaged)
	}
	return out, nil
}

func (r *Restored) read(text []byte, mem orders.Store, pilot *contextpilot.Pilot) {
	var rec record
	if json.Unmarshal(text, &rec) != nil || !r.take(&rec, mem, pilot) {
		r.Skipped++ // of a later version, perhaps
	}
}

func (r *Restored) take(rec *record, mem orders.Store, pilot *contextpilot.Pilot) bool {
	switch {
	case rec.Order != nil:
		raw, err := hex.DecodeString(rec.Order.Key)
		if err != nil || len(raw) != len(orders.Key{}) || !orders.Valid(rec.Order.Order) {
			return false
		}
		mem.Put(context.Background(), rec.Order.Tenant, orders.Key(raw), rec.Order.Order)
		r.Orders++
	case rec.Plan != nil:
		if !rec.Plan.valid() {
			return false
		}
		rec.Plan.again(pilot)
		pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Scope: rec.Plan.Scope, Request: rec.Plan.ID})
		r.Plans++
	case rec.Gone != nil:
		pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Scope: rec.Gone.Scope, Request: rec.Gone.ID})
	case rec.Clear != nil:
		rec.Clear.again(pilot)
	case rec.Forget != nil:
		_ = mem.Forget(context.Background(), *rec.Forget) // a memory's error is nil
		pilot.DropTenant(*rec.Forget)
	default:
		return false
	}
	return true
}

func (p *plan) valid() bool {
	return p.ID != "" && len(p.Blocks) > 0 && (p.Sent == nil || len(p.Sent) == len(p.Blocks) && orders.Valid(p.Sent))
}

// again plans the prompt, from which the policy learns what it learned then, and puts it into the index as it was sent: the
// index that it is planned in may be another by now.
func (p *plan) again(pilot *contextpilot.Pilot) {
	req := contextpilot.Request{ID: p.ID, Scope: p.Scope, Blocks: make([]contextpilot.Block, len(p.Blocks)), Fixed: p.Fixed}
	for i, b := range p.Blocks {
		req.Blocks[i] = contextpilot.Block{ID: b.ID, Tokens: max(b.Tokens, 1)}
	}
	made := pilot.Plan(req)
	if p.Sent == nil || slices.EqualFunc(made.Items, p.Sent, func(it contextpilot.Item, i int) bool { return it.Index == i }) {
		return
	}
	blocks := make([]contextpilot.Block, len(p.Sent))
	for i, from := range p.Sent {
		blocks[i] = req.Blocks[from]
	}
	req.Blocks, req.Fixed = blocks, true
	pilot.Plan(req)
}

// again empties the index of prompts to the models.
func (c *clearing) again(pilot *contextpilot.Pilot) {
	for _, scope := range pilot.Scopes() {
		if len(c.Models) == 0 || slices.Contains(c.Models, scope.Model) {
			pilot.Observe(contextpilot.Event{Kind: contextpilot.Cleared, Scope: scope})
		}
	}
}

// Planned notes a prompt whose blocks have IDs and tokens, and the order in which they are sent: the first is block sent[0] of
// the request. Nil: as they stand.
func (s *State) Planned(r contextpilot.Request, sent []int) {
	p := &plan{ID: r.ID, Scope: r.Scope, Blocks: make([]block, len(r.Blocks)), Fixed: r.Fixed, Sent: sent}
	for i, b := range r.Blocks {
		p.Blocks[i] = block{ID: b.ID, Tokens: b.Tokens}
	}
	s.append(record{Plan: p})
}

// Gone notes that a prompt is not in the engine's cache any more.
func (s *State) Gone(scope contextpilot.Scope, id string) {
	s.append(record{Gone: &plan{ID: id, Scope: scope}})
}

// Cleared notes that the engines which serve some models (none: all) hold nothing any more.
func (s *State) Cleared(models []string) {
	s.append(record{Clear: &clearing{Models: models}})
}

func (s *State) append(r record) {
	text, err := json.Marshal(r)
	if err == nil {
		err = s.notes.append(text)
	}
	if err != nil && s.failed.Add(1) == 1 { // the others would say the same
		s.log.Error("state cannot be written; answers go on, but the next restart will know less", "error", err)
	}
}

// Close writes everything to the disk.
func (s *State) Close() error { return s.notes.close() }

// Orders returns a store that notes what is put into inner, and which tenants are forgotten.
func (s *State) Orders(inner orders.Store) orders.Store { return &noted{Store: inner, state: s} }

type noted struct {
	orders.Store
	state *State

	mu      sync.RWMutex // between a note and the forgets that were noted before it
	forgets uint64
}

// Put notes the order of the place; that of another replica, too.
func (n *noted) Put(ctx context.Context, tenant string, k orders.Key, proposed []int) []int {
	n.mu.RLock()
	forgets := n.forgets
	n.mu.RUnlock()
	winner := n.Store.Put(ctx, tenant, k, proposed)
	n.mu.RLock()
	defer n.mu.RUnlock()
	if winner != nil && forgets == n.forgets { // else it may be what was forgotten meanwhile
		n.state.append(record{Order: &order{Tenant: tenant, Key: hex.EncodeToString(k[:]), Order: slices.Clone(winner)}})
	}
	return winner
}

// Forget notes that a tenant is forgotten, its prompts too. What is put at the same time may be lost with the process.
func (n *noted) Forget(ctx context.Context, tenant string) error {
	err := n.Store.Forget(ctx, tenant)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forgets++
	n.state.append(record{Forget: &tenant})
	return err
}

// Damages returns how many records were lost to damage, or 1 if the whole file was set aside. [State.Restore] counts them.
func (s *State) Damages() int { return int(s.damages.Load()) }
