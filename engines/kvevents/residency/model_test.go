package residency_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
)

const size = 2 // tokens of a block, in the model

// cache is a slow and obvious model: a bag of physical blocks, each named by all tokens up to and with it, and the
// requests.
type cache struct {
	blocks   []string // one per copy
	names    map[string]kvevents.Hash
	requests map[string]*asked
	lost     []string         // requests, gone from the map above
	events   []kvevents.Event // not published yet
}

type asked struct {
	tokens      []int
	salt        string
	ended, seen bool
}

func newCache() *cache {
	return &cache{names: map[string]kvevents.Hash{}, requests: map[string]*asked{}}
}

// path names the first n blocks of a prompt.
func path(salt string, tokens []int, n int) string { return fmt.Sprint(salt, tokens[:n*size]) }

func (c *cache) hash(path string) kvevents.Hash {
	h, ok := c.names[path]
	if !ok {
		h = kvevents.Int(int64(len(c.names)) - 5) // some are negative
		c.names[path] = h
	}
	return h
}

// resident is the number of leading blocks that have a copy.
func (c *cache) resident(salt string, tokens []int) int {
	n := 0
	for n < len(tokens)/size && slices.Contains(c.blocks, path(salt, tokens, n+1)) {
		n++
	}
	return n
}

func (c *cache) any(salt string, tokens []int) bool {
	for n := range len(tokens) / size {
		if slices.Contains(c.blocks, path(salt, tokens, n+1)) {
			return true
		}
	}
	return false
}

// store publishes blocks from number from on, up to number to.
func (c *cache) store(salt string, tokens []int, from, to int) {
	if from >= to {
		return
	}
	ev := kvevents.Event{Kind: kvevents.Stored, Tokens: slices.Clone(tokens[from*size : to*size]), BlockSize: size, Salt: []byte(salt)}
	if from > 0 {
		ev.Parent = c.hash(path(salt, tokens, from))
	}
	for n := from + 1; n <= to; n++ {
		p := path(salt, tokens, n)
		c.blocks = append(c.blocks, p)
		ev.Hashes = append(ev.Hashes, c.hash(p))
	}
	c.events = append(c.events, ev)
}

// evict gives up copies, all in one event.
func (c *cache) evict(which ...int) {
	ev := kvevents.Event{Kind: kvevents.Removed}
	for _, i := range which {
		i %= len(c.blocks)
		ev.Hashes = append(ev.Hashes, c.hash(c.blocks[i]))
		c.blocks = slices.Delete(c.blocks, i, i+1)
	}
	c.events = append(c.events, ev)
}

func (c *cache) clear() {
	c.blocks = nil
	c.events = append(c.events, kvevents.Event{Kind: kvevents.Cleared})
	for id, r := range c.requests {
		if r.ended && r.seen {
			c.lose(id)
		}
		r.seen = false
	}
}

// look brings seen and lost up to date, at the end of a batch.
func (c *cache) look() {
	for id, r := range c.requests {
		r.seen = r.seen || c.resident(r.salt, r.tokens) > 0
		if r.ended && r.seen && !c.any(r.salt, r.tokens) {
			c.lose(id)
		}
	}
}

func (c *cache) lose(id string) {
	c.lost = append(c.lost, id)
	delete(c.requests, id)
}

// TestIndexIsTheCache: whatever the cache does, in whatever order it evicts and however its events fall into batches,
// the index says of every request and every prompt what the cache holds of it, and reports exactly those as lost
// that lost everything.
func TestIndexIsTheCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCache()
		x, lost := losing()
		prompt := func(t *rapid.T) []int { return rapid.SliceOfN(rapid.IntRange(1, 2), 0, 9).Draw(t, "tokens") }
		salt := func(t *rapid.T) string { return rapid.SampledFrom([]string{"", "", "a"}).Draw(t, "salt") }
		known := func(t *rapid.T) string {
			if len(c.requests) == 0 {
				t.Skip("no request")
			}
			return rapid.SampledFrom(slices.Sorted(maps.Keys(c.requests))).Draw(t, "id")
		}
		publish := func() {
			x.Apply(&kvevents.Batch{Events: c.events})
			c.events = nil
			c.look()
		}
		t.Repeat(map[string]func(*rapid.T){
			"register": func(t *rapid.T) {
				publish()
				r := &asked{tokens: prompt(t), salt: salt(t)}
				id := fmt.Sprint("r", rapid.IntRange(0, 5).Draw(t, "id")) // retries use one again
				x.Register(id, r.tokens, residency.Key{Salt: r.salt})
				c.requests[id] = r
				c.look()
			},
			"serve": func(t *rapid.T) { // with hits, a second copy of the last block if all are cached, and an answer
				r := c.requests[known(t)]
				n := len(r.tokens) / size
				hit := c.resident(r.salt, r.tokens)
				if hit == n && n > 0 && rapid.Bool().Draw(t, "again") {
					hit--
				}
				c.store(r.salt, r.tokens, hit, n)
				if n*size == len(r.tokens) && rapid.Bool().Draw(t, "answer") {
					c.store(r.salt, append(slices.Clone(r.tokens), 3, 3), n, n+1)
				}
			},
			"part": func(t *rapid.T) { // a long prompt is computed in parts
				r := c.requests[known(t)]
				hit := c.resident(r.salt, r.tokens)
				c.store(r.salt, r.tokens, hit, min(hit+1, len(r.tokens)/size))
			},
			"stranger": func(t *rapid.T) { // not registered
				p, s := prompt(t), salt(t)
				c.store(s, p, c.resident(s, p), len(p)/size)
			},
			"end": func(t *rapid.T) {
				publish()
				id := known(t)
				if rapid.Bool().Draw(t, "served") {
					x.Served(id)
				} else {
					x.Aborted(id)
				}
				c.requests[id].ended = true
				c.look()
			},
			"drop": func(t *rapid.T) {
				publish()
				id := known(t)
				x.Drop(id)
				delete(c.requests, id)
			},
			"evict": func(t *rapid.T) {
				if len(c.blocks) == 0 {
					t.Skip("empty")
				}
				c.evict(rapid.SliceOfN(rapid.IntRange(0, 50), 1, min(4, len(c.blocks))).Draw(t, "which")...)
			},
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 5).Draw(t, "rarely") > 0 {
					t.Skip("not now")
				}
				publish()
				c.clear()
			},
			"": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "more") {
					return
				}
				publish()
				for _, id := range slices.Sorted(maps.Keys(c.requests)) {
					r := c.requests[id]
					got, whole := x.Resident(id)
					if n := c.resident(r.salt, r.tokens) * size; got != n && x.Stats().BlockSize > 0 || !whole {
						t.Fatalf("%s: %d tokens, complete %v, want %d", id, got, whole, n)
					}
					if n := x.Prefix(r.tokens, residency.Key{Salt: r.salt}); n != got {
						t.Fatalf("%s: as a prompt %d, as a request %d", id, n, got)
					}
				}
				slices.Sort(*lost)
				slices.Sort(c.lost)
				if diff := cmp.Diff(c.lost, *lost); diff != "" {
					t.Fatal(diff)
				}
				if s := x.Stats(); s.Unknown+s.Orphans+s.Conflicts+s.Overflow > 0 {
					t.Fatalf("%+v", s)
				}
				if err := x.Check(); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}
