package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// model is the cache written down as plainly as possible: keys are whole prefixes, lists are searched. It runs
// one request at a time. With no limit it does not look at blocks' places at all.
type model struct {
	size    int // tokens in a block
	limit   int // blocks; 0: unlimited
	free    []int
	key     []string         // of each block
	holders map[string][]int // key -> blocks, oldest first
	evicted int
}

func newModel(size, limit int) *model {
	m := &model{size: size, limit: limit, key: make([]string, limit), holders: map[string][]int{}}
	for b := range limit {
		m.free = append(m.free, b)
	}
	return m
}

// keyOf names the first n tokens.
func keyOf(ids []uint32, n int) string { return fmt.Sprint(ids[:n]) }

// resident counts the full blocks at the start of ids that are in the cache.
func (m *model) resident(ids []uint32) int {
	n := 0
	for (n+1)*m.size <= len(ids) && len(m.holders[keyOf(ids, (n+1)*m.size)]) > 0 {
		n++
	}
	return n
}

// run admits a request and ends it, and returns the number of blocks read; ok is false if it is too large. Between the
// two it calls admitted.
func (m *model) run(prompt, answer []uint32, admitted func()) (hits int, ok bool) {
	all := slices.Concat(prompt, answer)
	kv := max(0, len(all)-1)
	need := max(len(prompt)/m.size, (kv+m.size-1)/m.size)
	if m.limit > 0 && need > m.limit {
		admitted()
		return 0, false
	}
	hits = min(m.resident(prompt), max(0, len(prompt)-1)/m.size)
	var mine []int
	for i := range hits {
		b := -1 - i
		if m.limit > 0 {
			b = m.holders[keyOf(all, (i+1)*m.size)][0]
			m.free = slices.DeleteFunc(m.free, func(x int) bool { return x == b })
		}
		mine = append(mine, b)
	}
	for len(mine) < need {
		if m.limit == 0 {
			mine = append(mine, 0)
			continue
		}
		b := m.free[0]
		m.free = m.free[1:]
		if k := m.key[b]; k != "" {
			m.holders[k] = slices.DeleteFunc(m.holders[k], func(x int) bool { return x == b })
			m.key[b] = ""
			m.evicted++
		}
		mine = append(mine, b)
	}
	name := func(from, to int) {
		for i := from; i < to; i++ {
			k := keyOf(all, (i+1)*m.size)
			if m.limit > 0 {
				m.key[mine[i]] = k
			}
			m.holders[k] = append(m.holders[k], mine[i])
		}
	}
	name(hits, len(prompt)/m.size)
	admitted()
	name(len(prompt)/m.size, max(len(prompt)/m.size, kv/m.size))
	if m.limit == 0 {
		return hits, true
	}
	var bare []int
	for _, b := range slices.Backward(mine) {
		if m.key[b] == "" {
			bare = append(bare, b)
		} else {
			m.free = append(m.free, b)
		}
	}
	m.free = append(bare, m.free...)
	return hits, true
}

func (m *model) distinct() int {
	n := 0
	for _, h := range m.holders {
		if len(h) > 0 {
			n++
		}
	}
	return n
}

// reports is what subscribers know: how much of each request is resident.
type reports struct {
	size int
	left map[string]int // request -> blocks
	full map[string]int // request -> blocks of its prompt and answer
	log  []contextpilot.Event
}

func (o *reports) sink(events ...contextpilot.Event) {
	for _, e := range events {
		o.log = append(o.log, e)
		switch e.Kind {
		case contextpilot.Served:
			o.left[e.Request] = o.full[e.Request]
		case contextpilot.Shrunk:
			o.left[e.Request] = e.Tokens / o.size
		case contextpilot.Gone:
			delete(o.left, e.Request)
		case contextpilot.Cleared:
			clear(o.left)
		}
	}
}

// TestModel runs random requests through the simulator and the model. After each one the counts are equal, and what
// subscribers know of every request is what the model finds resident: the least since the request ended, since
// it is not reported that a block came back.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 4).Draw(t, "block tokens")
		limit := rapid.IntRange(0, 14).Draw(t, "blocks")
		var answer string
		e := sim.New(sim.Options{
			BlockTokens: size, CapacityTokens: limit * size,
			Reply: func(engines.Request) string { return answer },
		})
		m := newModel(size, limit)
		out := &reports{size: size, left: map[string]int{}, full: map[string]int{}}
		e.Subscribe(out.sink)
		var voc vocab
		prompts := map[string][]uint32{}
		cached := map[string][]uint32{} // with the answer, but for its last token
		want := map[string]int{}        // request -> blocks that subscribers should believe resident
		words := rapid.SampledFrom([]string{"a b c", "a b d", "c", "d d", "a", "e f g h", "", "longerthansix"})
		hits, oversize := 0, 0
		for step := range rapid.IntRange(1, 40).Draw(t, "requests") {
			if rapid.IntRange(0, 30).Draw(t, "reset") == 30 {
				e.Reset()
				evicted := m.evicted
				m = newModel(size, limit)
				m.evicted = evicted
				clear(want)
			}
			id := fmt.Sprint(step)
			if rapid.IntRange(0, 9).Draw(t, "retry") == 9 {
				id = fmt.Sprint(step / 2) // an ID that was used before, or is used now
			}
			var chat []engines.Message
			var prompt []uint32
			for _, w := range rapid.SliceOfN(words, 0, 6).Draw(t, "messages") {
				chat = append(chat, engines.Message{Content: w})
				prompt = voc.append(prompt, w)
			}
			answer = words.Draw(t, "answer")
			delete(want, id)
			delete(out.left, id)
			prompts[id] = prompt
			all := voc.append(slices.Clone(prompt), answer)
			cached[id] = all[:max(len(prompt), len(all)-1)]
			if len(prompt) < size { // too short to be followed
				cached[id] = nil
			}
			out.full[id] = len(cached[id]) / size
			wantHits, fits := m.run(prompt, all[len(prompt):], func() {
				for other := range want {
					want[other] = min(want[other], m.resident(cached[other]))
				}
			})
			if fits {
				want[id] = len(cached[id]) / size
			}
			response, err := e.Generate(t.Context(), engines.Request{ID: id, Messages: chat}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := response.Usage; got.PromptTokens != len(prompt) || got.CachedTokens != wantHits*size {
				t.Fatalf("request %s: %+v, want %d of %d tokens cached", id, got, wantHits*size, len(prompt))
			}
			hits += wantHits * size
			if !fits {
				oversize++
			}
			diffReported(t, want, out.left)
			s := e.Stats()
			if s.EvictedBlocks != m.evicted || s.ResidentBlocks != m.distinct() || s.HitTokens != hits || s.Oversize != oversize {
				t.Fatalf("%+v; want %d evicted, %d resident, %d hit, %d oversize", s, m.evicted, m.distinct(), hits, oversize)
			}
			if s.Running != 0 || s.Waiting != 0 || limit > 0 && s.ResidentBlocks > limit {
				t.Fatalf("%+v after the last request ended", s)
			}
			if err := e.CheckIdle(); err != nil {
				t.Fatal(err)
			}
			for other, ids := range prompts {
				if got, want := e.Resident(chatOf(&voc, ids)), min(m.resident(ids), max(0, len(ids)-1)/size)*size; got != want {
					t.Fatalf("Resident of request %s = %d, want %d", other, got, want)
				}
			}
		}
	})
}

// diffReported compares, leaving out requests of which nothing is resident: those are gone, or were never long enough.
func diffReported(t *rapid.T, want, got map[string]int) {
	t.Helper()
	some := func(in map[string]int) map[string]int {
		out := map[string]int{}
		for id, n := range in {
			if n > 0 {
				out[id] = n
			}
		}
		return out
	}
	if diff := cmp.Diff(some(want), some(got)); diff != "" {
		t.Fatalf("resident blocks by request (-model +reported):\n%s", diff)
	}
}

// chatOf makes one message per token, which is the same prompt.
func chatOf(v *vocab, ids []uint32) engines.Request {
	words := map[uint32]string{}
	for _, w := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "longer", "thansi", "x"} {
		words[v.id(w)] = w
	}
	var req engines.Request
	for _, id := range ids {
		req.Messages = append(req.Messages, engines.Message{Content: words[id]})
	}
	return req
}
