package llamacpp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
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
	mean(pace, took.Seconds()/float64(max(bytes, 1)))
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

// size returns how long the file of a slot with tokens will be.
func (d *disk) size(tokens int) float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.grows.size(tokens)
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
		d.off = fmt.Sprintf("the server computes what was restored: %d of %d tokens were cached "+
			"(sliding windows or recurrent layers, llama.cpp #26676, or other clients)", cached, want)
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
