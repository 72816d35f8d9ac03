package replay_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// generate makes a trace of sessions with up to four interleaved turns; documents are drawn by popularity from
// topics, so that requests overlap. Some documents share their text.
func generate(t testing.TB, seed uint64, requests, k int) ([]trace.Request, *trace.Blocks) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 7))
	const pool = 120
	var list []trace.Block
	for i := range pool {
		text := fmt.Sprintf("Document %d tells of topic %d. ", i, i/12)
		for w := range 10 + rnd.IntN(60) {
			text += fmt.Sprintf("w%d_%d ", i, w*7%31)
		}
		if i%17 == 0 && i > 0 {
			text = list[i-1].Text
		}
		list = append(list, trace.Block{ID: fmt.Sprintf("d%d", i), Text: text})
	}
	blocks, err := trace.NewBlocks(list...)
	if err != nil {
		t.Fatal(err)
	}
	type open struct {
		id         string
		turn, left int
		topic      int
	}
	var out []trace.Request
	var sessions []*open
	for len(out) < requests {
		if len(sessions) < 5 {
			id := fmt.Sprintf("s%d", len(out))
			if len(out) == 0 {
				id = "" // an ID like others
			}
			sessions = append(sessions, &open{id: id, left: 2 + rnd.IntN(3), topic: rnd.IntN(10)})
		}
		i := rnd.IntN(len(sessions))
		s := sessions[i]
		s.turn++
		s.left--
		id := fmt.Sprintf("q%d", len(out))
		if len(out) == 1 {
			id = ""
		}
		q := trace.Request{ID: id, Session: s.id, Turn: s.turn, Query: fmt.Sprintf("what of %d in %s?", s.topic, s.id)}
		if rnd.IntN(3) > 0 {
			q.Answer = fmt.Sprintf("It is %d.", rnd.IntN(5))
		}
		for n := rnd.IntN(k + 1); len(q.Docs) < n; {
			d := s.topic*12 + int(float64(12)*rnd.Float64()*rnd.Float64())
			if rnd.IntN(4) == 0 {
				d = rnd.IntN(pool)
			}
			if id := fmt.Sprintf("d%d", d); !slices.Contains(q.Docs, id) {
				q.Docs = append(q.Docs, id)
			}
		}
		out = append(out, q)
		if s.left == 0 {
			sessions = slices.Delete(sessions, i, i+1)
		}
	}
	return out, blocks
}

// validate is the evaluation's definition of a valid plan.
func validate(trc []trace.Request, plan []trace.Plan, online, history bool) error {
	byID := map[string]trace.Request{}
	for _, q := range trc {
		byID[q.ID] = q
	}
	if len(plan) != len(trc) {
		return fmt.Errorf("%d lines for %d requests", len(plan), len(trc))
	}
	seen, last, shown := map[string]bool{}, map[string]int{}, map[string]map[string]bool{}
	for i, p := range plan {
		q, ok := byID[p.ID]
		if !ok || seen[p.ID] {
			return fmt.Errorf("line %d: request %q unknown or twice", i+1, p.ID)
		}
		seen[p.ID] = true
		if p.Session != q.Session || p.Turn != q.Turn {
			return fmt.Errorf("request %s: session %q turn %d", p.ID, p.Session, p.Turn)
		}
		if online && trc[i].ID != p.ID {
			return fmt.Errorf("line %d: %s, the trace has %s", i+1, p.ID, trc[i].ID)
		}
		if q.Turn <= last[q.Session] {
			return fmt.Errorf("request %s: turn %d after %d", p.ID, q.Turn, last[q.Session])
		}
		last[q.Session] = q.Turn
		both := slices.Sorted(slices.Values(slices.Concat(p.Docs, p.Refs)))
		if want := slices.Sorted(slices.Values(q.Docs)); !slices.Equal(both, want) {
			return fmt.Errorf("request %s: sent %v, retrieved %v", p.ID, both, want)
		}
		if shown[q.Session] == nil {
			shown[q.Session] = map[string]bool{}
		}
		for _, d := range p.Refs {
			if !history || !shown[q.Session][d] {
				return fmt.Errorf("request %s: %s was not shown before", p.ID, d)
			}
		}
		for _, d := range p.Docs {
			shown[q.Session][d] = true
		}
	}
	return nil
}
