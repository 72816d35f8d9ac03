package llamacpp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/engines"
)

// disk is the tier of slot files: what a slot is about to lose is saved, and what a prompt begins with is restored, where that takes
// less time than computing it. One file is read or written at a time, as the server does, too.
type disk struct {
	shelf  *shelf
	tenant string
	busy   chan struct{} // has an element while a file is read or written

	mu     sync.Mutex // guards what follows; no other lock is taken while it is held
	closed bool
	turn   uint64 // the process of the server that was tried, by book.turn; 0: none
	key    string // of the model and the tenant, "" if off
	off    string // why the tier is off
	grows  growth
	pace   pace
	short  int // restored prefixes in a row that the server did not use
	stats  DiskStats
}

// DiskStats counts what became of slot files since New. Files and Bytes are those in [Config].SlotDir now.
type DiskStats struct {
	Saves          uint64
	Restores       uint64
	RestoredTokens uint64 // of prompts, beyond what their slots had
	Refusals       uint64 // files that were missing, damaged, or not taken by the server, and slots that it did not save
	Files          int
	Bytes          int64
}

// pace is how long things take, in means of what was measured. 0: not measured yet.
type pace struct {
	load    float64 // seconds for each byte of a file that is checked and restored
	save    float64 // and of one that is saved and read for its checksum
	compute float64 // seconds for each token of a prompt
}

// First guesses: a slow disk, and a small model on a few cores.
const (
	firstLoad    = 5e-9
	firstSave    = 1e-8
	firstCompute = 1e-3
)

// A file is worth it from leastTokens on; for fewer than leastGain nothing is read or written.
const (
	leastTokens = 32
	leastGain   = 8
)

// diskPatience bounds what the server is asked to do with one file. It reads and writes them between two steps of its model.
const diskPatience = 30 * time.Second

// mostShort is how often in a row the server may compute what was restored before the tier is switched off.
const mostShort = 2

func openDisk(c Config) (*disk, error) {
	if c.SlotDir == "" {
		return nil, nil
	}
	s, err := openShelf(c.SlotDir, c.SlotBytes)
	if err != nil {
		return nil, fmt.Errorf("llamacpp: Config.SlotDir: %w", err)
	}
	return &disk{shelf: s, tenant: c.Server.Scope.Tenant, busy: make(chan struct{}, 1)}, nil
}

// mean moves a mean towards what was measured.
func mean(m *float64, measured float64) {
	if *m == 0 {
		*m = measured
		return
	}
	*m += (measured - *m) / 8
}

// pays reports whether loading bytes takes less time than computing tokens; unsaved bytes must be saved first.
func (d *disk) pays(tokens int, bytes float64, unsaved bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	perByte := cmp.Or(d.pace.load, firstLoad)
	if unsaved {
		perByte += cmp.Or(d.pace.save, firstSave)
	}
	if perByte*bytes < cmp.Or(d.pace.compute, firstCompute)*float64(tokens) {
		return true
	}
	// A disk that was slow once is tried again some day.
	d.pace.load *= 0.98
	d.pace.save *= 0.98
	return false
}

// measured takes over how long a file was loaded, or saved, and computed how long a prompt was computed.
func (d *disk) measured(pace *float64, bytes int64, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	mean(pace, took.Seconds()/float64(bytes))
}

func (d *disk) computed(tokens int, took time.Duration) {
	if d == nil || tokens < leastTokens || took <= 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	mean(&d.pace.compute, took.Seconds()/float64(tokens))
}

func (d *disk) count(change func(*DiskStats)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.stats)
}

// state returns the key of files that fit what the server is in a turn; "": it must be tried first, or the tier is off.
func (d *disk) state(turn uint64) (key string, tried bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return "", true
	case d.turn != turn:
		return "", false
	}
	return d.key, true
}

// set notes what trying the server in a turn has shown.
func (d *disk) set(turn uint64, key, off string, grows growth) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn, d.key, d.off, d.grows, d.short = turn, key, off, grows, 0
}

// saved reports whether a file has the keys and values of all its tokens; if not, no file of this server will.
func (d *disk) saved(a acted) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.grows.whole(a.Saved, a.Written) {
		return nil
	}
	d.key = ""
	d.off = fmt.Sprintf("the file of %d tokens has only %d bytes, those of a sliding window", a.Saved, a.Written)
	return errors.New(d.off)
}

// used notes how much of a restored prefix the server has used.
func (d *disk) used(cached, want int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if cached >= want {
		d.short = 0
		return
	}
	if d.short++; d.short >= mostShort {
		d.key = ""
		d.off = fmt.Sprintf("the server computes what was restored: %d of %d tokens were cached (sliding windows or recurrent layers, llama.cpp #26676, or other clients)", cached, want)
	}
}

func (d *disk) statistics() DiskStats {
	files, size := d.shelf.held()
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Files, s.Bytes = files, size
	return s
}

// about says in words what the tier does.
func (d *disk) about() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return "off: the engine was closed"
	case d.off != "":
		return "off: " + d.off
	case d.key == "":
		return "not tried yet"
	}
	return "on"
}

// enter waits for the right to read or write a file; it reports false when ctx has ended.
func (d *disk) enter(ctx context.Context) bool {
	select {
	case d.busy <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *disk) leave() { <-d.busy }

// modelKey names what keys and values depend on besides tokens, as far as the server says: its model's file, also as it is on
// this machine, and its release; and the tenant, whose files are for no other.
func (d *disk) modelKey(i Info) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q", i.Model, i.Type, i.Build, d.tenant)
	if info, err := os.Stat(i.Model); err == nil {
		fmt.Fprintf(h, " %d %d", info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

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

// better returns the file that is worth restoring for a lease whose slot has share tokens of its prompt, nil if there is none.
func (d *disk) better(key string, l *lease, share int) *slotFile {
	if l.private || !l.reuse {
		return nil
	}
	file, n := d.shelf.find(key, l.prompt)
	if gain := n - share; gain < leastGain || !d.pays(gain, float64(file.Bytes), false) {
		return nil
	}
	return file
}

// keep saves a slot that will keep only its first tokens, if what it loses is in no file and worth one.
func (e *Engine) keep(ctx context.Context, key string, at int, s *slot, keep int) {
	d := e.disk
	if s.private || s.other != nil || s.check {
		return
	}
	_, filed := d.shelf.find(key, s.tokens)
	lost := len(s.tokens) - max(keep, filed)
	size := d.shelf.perToken(key) * float64(len(s.tokens))
	if len(s.tokens) < leastTokens || lost < leastGain || !d.pays(lost, size, true) {
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

// close gives the folder back. Files that a request has begun to read or write are waited for.
func (d *disk) close() error {
	d.busy <- struct{}{}
	defer d.leave()
	d.mu.Lock()
	closed := d.closed
	d.closed = true
	d.mu.Unlock()
	if closed {
		return nil
	}
	return d.shelf.close()
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
