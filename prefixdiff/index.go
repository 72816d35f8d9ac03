package prefixdiff

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Config is how an index remembers prompts. The zero value suits a program: hashes only, in at most 64 MiB.
type Config struct {
	// MaxBytes bounds the memory in bytes, about; 0: 64 MiB. The oldest prompts are forgotten first.
	MaxBytes int64
	// Load returns an earlier prompt once more, by the number that Add gave it. With it the index keeps hashes of chunks alone, and a
	// file of any length can be compared. It must be safe for concurrent use.
	Load func(number int) (Prompt, error)
	// KeepTexts keeps the texts of prompts, so that findings quote them.
	KeepTexts bool
	// Key is mixed into all hashes; 0: a random one, new in each process.
	Key uint64
}

// defaultBytes is the memory of an index without MaxBytes.
const defaultBytes = 64 << 20

// Index remembers prompts, and finds for a new one the earlier one with the longest common prefix. Time for a prompt is linear in its
// length, whatever the number of earlier ones. It is safe for concurrent use.
type Index struct {
	cfg Config
	splitter

	mu       sync.Mutex
	next     int
	prefixes *aging[uint64, uint32]   // by the hash of a prefix: the last prompt with it
	branches *aging[uint64, []branch] // by the hash of a prefix: how prompts go on from it, where they do so in several ways
	contents *aging[uint64, uint32]   // by the hash of a chunk: the last prompt with it
	memory   *memory
}

// stored is an earlier prompt.
type stored struct {
	views   []view
	replica string
}

// New returns an empty index. It returns an error for a negative bound.
func New(cfg Config) (*Index, error) {
	if cfg.MaxBytes < 0 {
		return nil, fmt.Errorf("prefixdiff: MaxBytes is %d", cfg.MaxBytes)
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = defaultBytes
	}
	for cfg.Key == 0 {
		var b [8]byte
		rand.Read(b[:])
		cfg.Key = binary.LittleEndian.Uint64(b[:])
	}
	x := &Index{cfg: cfg, splitter: splitter{seed: cfg.Key}}
	maps := cfg.MaxBytes / 2
	if cfg.Load != nil {
		maps = cfg.MaxBytes
	}
	x.prefixes = newAging[uint64, uint32](maps * 2 / 5)
	x.contents = newAging[uint64, uint32](maps * 2 / 5)
	x.branches = newAging[uint64, []branch](maps / 5)
	x.memory = newMemory(cfg.MaxBytes / 2)
	return x, nil
}

// Bytes returns the memory that the index takes, about, at most Config.MaxBytes.
func (x *Index) Bytes() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.prefixes.size() + x.contents.size() + x.branches.size() + x.memory.size()
}

// Request is a prompt on its way into an index, see [Index.Prepare].
type Request struct {
	x      *Index
	prompt Prompt
	views  []view
	tokens []int32 // of the parts; -1: not counted yet
	chunks []chunk
	known  int // chunks in front that some earlier prompt begins with
	number int
	near   []uint32 // earlier prompts that may have the longest prefix, or the most in common
	like   bool     // the first of near was found by what it has behind the prefix
	seen   Seen
	common int // tokens; -1: not counted yet
}

// Prepare does what takes the most time and depends on the prompt alone. Several can be prepared at a time.
func (x *Index) Prepare(p Prompt) *Request {
	r := &Request{x: x, prompt: p, common: -1}
	if p.Partial {
		return r
	}
	r.chunks = x.chunks(&r.prompt)
	r.views = x.see(&r.prompt)
	r.tokens = make([]int32, len(p.Parts))
	for i := range r.tokens {
		r.tokens[i] = -1
	}
	if x.cfg.Load == nil && r.fits() {
		x.prepare(r)
	}
	return r
}

// Add compares a prompt with the earlier ones and then remembers it. It returns false if nothing is lost: the prompt is the first
// of its kind, or only its end is new.
func (x *Index) Add(p Prompt) (Finding, bool) {
	r := x.Prepare(p)
	r.Insert()
	return r.Explain()
}

// maxBranches bounds how many ways to go on are remembered at one place.
const maxBranches = 4

// Insert remembers the prompt and returns its number, from 0. Calls decide which prompts are earlier.
func (r *Request) Insert() int {
	x := r.x
	x.mu.Lock()
	defer x.mu.Unlock()
	r.number = x.next
	x.next++
	if r.prompt.Partial {
		return r.number
	}
	r.find()
	for _, c := range r.chunks {
		x.contents.put(c.hash, uint32(r.number), mapEntry)
	}
	x.grow(r)
	if x.cfg.Load == nil && r.fits() {
		x.remember(r)
	}
	return r.number
}

// Sizes in bytes of what is remembered, about: an entry of a map, and what a prompt takes beside its parts.
const (
	mapEntry   = 28
	promptSize = 160
)

// branch is a way to go on from a prefix.
type branch struct {
	prefix uint64 // the longer one
	number uint32 // the prompt that was the only one to go on, whose longer prefix is not known, if prefix is 0
}

// grow adds the path of the prompt.
func (x *Index) grow(r *Request) {
	const root = 1
	parent, last, known := uint64(root), uint32(max(r.number-1, 0)), r.number > 0
	for _, c := range r.chunks {
		number, ok := x.prefixes.get(c.prefix)
		if !ok && known {
			known = false
			x.branch(parent, last, c.prefix)
		}
		x.prefixes.put(c.prefix, uint32(r.number), mapEntry)
		parent, last = c.prefix, number
	}
}

// branch notes a new way to go on from a prefix, whose last prompt was number.
func (x *Index) branch(from uint64, number uint32, to uint64) {
	list, ok := x.branches.get(from)
	if !ok {
		list = []branch{{number: number}}
	}
	if len(list) >= maxBranches {
		list = list[1:]
	}
	list = append(slices.Clone(list), branch{prefix: to})
	x.branches.put(from, list, mapEntry+16*int64(len(list)))
}

// find collects the earlier prompts that are worth a comparison.
func (r *Request) find() {
	x := r.x
	const root = 1
	at, deepest := uint64(root), 0
	for i, c := range r.chunks {
		if _, ok := x.prefixes.get(c.prefix); !ok {
			break
		}
		at, deepest = c.prefix, i+1
	}
	add := func(n uint32) {
		if !slices.Contains(r.near, n) {
			r.near = append(r.near, n)
		}
	}
	r.known = deepest
	if n, ok := r.most(deepest); ok {
		r.like = true
		add(n)
	}
	if deepest == len(r.chunks) && deepest > 0 { // all of it is there
		n, _ := x.prefixes.get(at)
		r.near = []uint32{n}
		return
	}
	if at != root {
		if n, ok := x.prefixes.get(at); ok {
			add(n)
		}
	}
	list, _ := x.branches.get(at)
	for _, next := range slices.Backward(list) {
		if n, ok := x.prefixes.get(next.prefix); ok {
			add(n)
		} else if next.prefix == 0 {
			add(next.number)
		}
	}
}

// most returns the earlier prompt that has most of what stands behind the first chunks.
func (r *Request) most(from int) (uint32, bool) {
	votes := map[uint32]int{}
	best, most := uint32(0), 0
	for _, c := range r.chunks[from:] {
		n, ok := r.x.contents.get(c.hash)
		if !ok {
			continue
		}
		votes[n] += int(c.bytes) + 1
		if v := votes[n]; v > most || v == most && n > best {
			best, most = n, v
		}
	}
	return best, most > 0
}

// fits reports whether a prompt is kept: one that would take a large part of the memory is not.
func (r *Request) fits() bool {
	bytes := int64(0)
	for i := range r.prompt.Parts {
		bytes += 2*int64(len(r.prompt.Parts[i].Text)) + 2*viewSize
	}
	return bytes <= r.x.cfg.MaxBytes/8
}

// key names a part wherever it stands.
func (v *view) key() uint64 { return mix(mix(v.hash, v.name), uint64(v.kind)<<8|uint64(v.role)) }

// prepare describes the parts that are not known.
func (x *Index) prepare(r *Request) {
	x.mu.Lock()
	for i := range r.views {
		if v, ok := x.memory.part(r.views[i].key()); ok {
			r.views[i].take(v)
		}
	}
	x.mu.Unlock()
	at := 0
	for i := range r.views {
		v, from := &r.views[i], at
		for at < len(r.chunks) && r.chunks[at].part == uint32(i) {
			at++
		}
		if v.words != nil {
			continue
		}
		x.describe(v, &r.prompt.Parts[i])
		v.chunks = make([]piece, 0, at-from)
		for _, c := range r.chunks[from:at] {
			v.chunks = append(v.chunks, c.piece)
		}
		if x.cfg.KeepTexts {
			v.text = strings.Clone(r.prompt.Parts[i].Text) // not the whole body
		}
	}
}

// take fills in what is known of the same part in another place.
func (v *view) take(known *view) {
	v.words, v.chunks, v.loose, v.text = known.words, known.chunks, known.loose, known.text
}

// remember keeps what a comparison needs of the prompt.
func (x *Index) remember(r *Request) {
	for i := range r.views {
		v := &r.views[i]
		if _, ok := x.memory.part(v.key()); !ok {
			kept := *v
			x.memory.keep(v.key(), &kept)
		}
	}
	x.memory.put(uint32(r.number), &stored{views: r.views, replica: r.seen.Replica})
}
