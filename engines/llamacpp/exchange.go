package llamacpp

import (
	"context"
	"errors"
	"slices"

	"github.com/ragpilot/ragpilot/engines"
)

// exchange prepares the slot of a lease: what the prompt would overwrite there is saved, and what a file has of the prompt restored.
// Nothing of it can fail the request.
func (e *Engine) exchange(ctx context.Context, l *lease) {
	d := e.disk
	if d == nil || l.prompt == nil || !e.pins(l) || !d.enter(ctx) {
		return
	}
	defer d.leave()
	key, tried := d.state(l.turn)
	if !tried {
		key = e.try(ctx, l)
	}
	if key == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, diskPatience)
	defer cancel()
	e.mu.Lock()
	s := e.book.slots[l.slot] // nothing else runs on it
	e.mu.Unlock()
	share := s.share(l.prompt)
	file := d.better(key, l, share)
	keep := share
	if file != nil {
		keep = 0 // restoring replaces everything
		d.shelf.hold(file)
		defer d.shelf.hold(nil)
	}
	e.keep(ctx, key, l.slot, &s, keep)
	if file != nil {
		e.restore(ctx, l, file, share)
	}
}

// pins reports whether the lease's request is sent to its slot, and nothing but that request changes the slot.
func (e *Engine) pins(l *lease) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.config.Unpinned && !e.book.clears && e.book.current(l)
}

// keep saves a slot that will keep only its first tokens, if what it loses is in no file and worth one.
func (e *Engine) keep(ctx context.Context, key string, at int, s *slot, keep int) {
	d := e.disk
	if s.private || s.other != nil || s.check {
		return
	}
	_, filed := d.shelf.find(key, s.tokens)
	lost := len(s.tokens) - max(keep, filed)
	size := d.size(max(s.length, len(s.tokens)))
	if len(s.tokens) < leastTokens || lost < leastGain || size > float64(d.shelf.limit) || !d.pays(lost, size, true) {
		return
	}
	if err := e.save(ctx, key, at, s, int64(size)); err != nil {
		d.count(func(s *DiskStats) { s.Refusals++ })
		return
	}
	d.count(func(s *DiskStats) { s.Saves++ })
}

func (e *Engine) save(ctx context.Context, key string, at int, s *slot, size int64) error {
	shelf := e.disk.shelf
	f := &slotFile{Key: key, Tokens: s.tokens, name: fileName(key, s.tokens)}
	shelf.evict(size)
	start := e.config.Server.Now()
	done, err := e.client.act(ctx, at, "save", f.name+fileEnding)
	if err == nil && (done.Saved < len(s.tokens) || s.length >= 0 && done.Saved != s.length) {
		err = errors.New("the slot has other tokens than was believed")
	}
	if err == nil {
		err = e.disk.saved(done)
	}
	if err == nil {
		f.Length, f.Bytes = done.Saved, done.Written
		err = shelf.add(f)
	}
	if err != nil {
		shelf.delete(f.name)
		return err
	}
	e.disk.measured(&e.disk.pace.save, f.Bytes, e.config.Server.Now().Sub(start))
	return nil
}

// restore loads a file into a lease's slot, once it is known to be whole. One that is not, or that the server refuses, is deleted.
func (e *Engine) restore(ctx context.Context, l *lease, f *slotFile, share int) {
	d := e.disk
	start := e.config.Server.Now()
	if err := d.shelf.check(f); err != nil {
		e.refuse(f)
		return
	}
	done, err := e.client.act(ctx, l.slot, "restore", f.name+fileEnding)
	if err == nil && done.Restored != f.Length {
		err = errDamaged
	}
	// The server may have been restarted meanwhile, with another model.
	if gone := e.wentAway(ctx, err) || e.identify(ctx) != nil || !e.pins(l); gone || err != nil {
		e.empty(ctx, l)
		if !gone {
			e.refuse(f)
		}
		return
	}
	d.measured(&d.pace.load, f.Bytes, e.config.Server.Now().Sub(start))
	d.shelf.touch(f)
	n := common(f.Tokens, l.prompt)
	d.count(func(s *DiskStats) { s.Restores, s.RestoredTokens = s.Restores+1, s.RestoredTokens+uint64(n-share) })
	e.refill(l, f.Tokens, f.Length)
	l.restored = true
}

// wentAway reports whether an error says nothing about a file. Which process the server is must be asked then.
func (e *Engine) wentAway(ctx context.Context, err error) bool {
	if ctx.Err() == nil && !errors.Is(err, engines.ErrUnreachable) && !errors.Is(err, engines.ErrInterrupted) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.suspicions++
	return true
}

// refuse deletes a file.
func (e *Engine) refuse(f *slotFile) {
	e.disk.shelf.remove(f)
	e.disk.count(func(s *DiskStats) { s.Refusals++ })
}

// empty erases a slot of which it is not certain what the server has left there: not every release does so itself when it finds a file bad
// (llama.cpp #27068). Where that is not possible nothing is believed of the slot.
func (e *Engine) empty(ctx context.Context, l *lease) {
	length := 0
	if _, err := e.client.act(ctx, l.slot, "erase", ""); err != nil {
		length = -1
	}
	e.refill(l, nil, length)
}

// refill notes that a lease's slot has been filled with something else.
func (e *Engine) refill(l *lease, tokens []token, length int) {
	e.mu.Lock()
	defer e.unlock()
	if e.book.current(l) {
		e.book.refill(l.slot, tokens, length)
	}
}

// saveAll saves what the free slots hold, when the engine is closed.
func (e *Engine) saveAll() {
	ctx, cancel := context.WithTimeout(context.Background(), diskPatience)
	defer cancel()
	d := e.disk
	if !d.enter(ctx) {
		return
	}
	defer d.leave()
	if key, _ := d.state(e.turn()); key == "" || e.identify(ctx) != nil {
		return
	}
	e.mu.Lock()
	turn, slots := e.book.turn, slices.Clone(e.book.slots)
	e.mu.Unlock()
	key, _ := d.state(turn) // "": it was restarted
	for i := range slots {
		if key != "" && slots[i].lease == nil && ctx.Err() == nil {
			e.keep(ctx, key, i, &slots[i], 0)
		}
	}
}

// closeDisk saves all and gives the folder back, once.
func (e *Engine) closeDisk() error {
	e.saveAll()
	return e.disk.close()
}

// aboutDisk says in words what the tier does.
func (e *Engine) aboutDisk() string {
	e.mu.Lock()
	clears := e.book.clears
	e.mu.Unlock()
	switch {
	case e.config.Unpinned:
		return "off: requests are not sent to slots (Config.Unpinned)"
	case clears:
		return "off: the server empties idle slots: start it with --parallel N"
	}
	return e.disk.about()
}
