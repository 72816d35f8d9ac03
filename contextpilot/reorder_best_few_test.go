package contextpilot_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// With TopNear a request of few blocks leaves retrieval order only for a path that finds much more.
func TestStaysInRetrievalOrder(t *testing.T) {
	for _, c := range []struct {
		name, before, ask, want string
		harmless                int // requests before these that share nothing
	}{
		{"one block more", "a b c d", "a x b", "a x b", 0},
		{"two blocks more", "a b c d", "a x b c", "a b c x", 0},
		{"not quite two blocks more", "a b c d", "a X b c", "a X b c", 0},
		{"the first block is unknown", "a b c d", "x a b c d", "x a b c d", 0},
		{"six blocks, three more", "a b c d", "y a z b u c", "y a z b u c", 0},
		{"six blocks, four more", "a b c d", "y a z b d c", "a b c d z y", 0},
		{"seven blocks, one more", "a b c d", "y a z w u v t", "y a z w u v t", 0},
		{"seven blocks, two more", "a b c d", "y a z b u v t", "a b z u v t y", 0},
		{"all blocks", "a b c d", "c a b", "a b c", 0},
		{"as retrieved", "a b c d", "a b x", "a b x", 0},
		{"one block more, and few were harmed", "a b c d", "a x b", "a b x", 300},
		{"the first block is unknown, and few were harmed", "a b c d", "x a b c d", "a b c d x", 300},
		{"no more, and few were harmed", "a b c d", "x b c", "x b c", 300},
	} {
		p := newPilot(t, contextpilot.Config{Top: contextpilot.TopNear, BlockSize: 1, Notes: contextpilot.Notes{Hint: contextpilot.HintNone}})
		for i := range c.harmless {
			p.Plan(contextpilot.Request{Blocks: big(fmt.Sprint("m", i), fmt.Sprint("n", i))})
		}
		p.Plan(contextpilot.Request{Blocks: sized(c.before)})
		ask := contextpilot.Request{ID: "ask", Blocks: sized(c.ask)}
		match := p.Match(ask)
		plan := p.Plan(ask)
		equal(t, c.name, c.want, sent(plan))
		equal(t, c.name+": Match", plan.Prefix.Tokens, match.Tokens)
		if stays := c.want == c.ask; plan.Why.Stays != stays || strings.Contains(plan.Explain(), "too little more") != stays {
			t.Errorf("%s: stays %v\n%s", c.name, plan.Why.Stays, plan.Explain())
		}
	}
}

// sized are blocks of 100 tokens; those in capitals have 200.
func sized(ids string) (blocks []contextpilot.Block) {
	for id := range strings.FieldsSeq(ids) {
		n := 100
		if id != strings.ToLower(id) {
			n = 200
		}
		blocks = append(blocks, prose(id, n))
	}
	return blocks
}

// Requests that repeat a retrieval order which an earlier request has left do not stay in it: it finds nothing there.
func TestLeftRetrievalOrder(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Top: contextpilot.TopNear, BlockSize: 1, Notes: contextpilot.Notes{Hint: contextpilot.HintNone}})
	for _, ids := range []string{"p q r", "p q r", "a b", "x a b"} {
		p.Plan(contextpilot.Request{Blocks: big(strings.Fields(ids)...)})
	}
	plan := p.Plan(contextpilot.Request{Blocks: big("x", "a", "b", "y")})
	if got := plan.Prefix.Tokens; got < 200 {
		t.Errorf("%d tokens expected in the cache: %s", got, plan.Explain())
	}
}

// Few requests of few blocks compute more than in retrieval order, and all together compute less.
func TestFewComputeMore(t *testing.T) {
	for _, k := range []int{3, 5} {
		careful, free := harmOf(t, k, contextpilot.TopNear), harmOf(t, k, contextpilot.TopAnywhere)
		t.Logf("k = %d: %+v with TopNear, %+v with TopAnywhere", k, careful, free)
		if careful.more*2 > free.more || careful.saved <= 0 {
			t.Errorf("k = %d: %+v with TopNear, %+v with TopAnywhere", k, careful, free)
		}
	}
}

// harm is the number of requests that are expected to compute more than an engine block more than if all were in retrieval order,
// and what all together save.
type harm struct{ more, saved, plain, prompt int }

func harmOf(t *testing.T, k int, top contextpilot.Top) (h harm) {
	t.Helper()
	layout := contextpilot.Config{Top: top, Notes: contextpilot.Notes{Hint: contextpilot.HintNone}}
	ours, plain := newPilot(t, layout), newPilot(t, contextpilot.Config{Policy: "retrieval"})
	for i, blocks := range contexts(1500, 30) {
		req := contextpilot.Request{ID: fmt.Sprint(i), Blocks: blocks[:k]}
		a, b := ours.Plan(req), plain.Plan(req)
		computed := -a.Prefix.Tokens
		if a.Echo != nil {
			computed += a.Echo.Tokens
		}
		if computed += b.Prefix.Tokens; computed > 16 {
			h.more++
		}
		h.saved -= computed
		h.plain += b.Prefix.Tokens
		for _, x := range blocks[:k] {
			h.prompt += max(x.Tokens, contextpilot.Estimate{}.Count(x.Text))
		}
	}
	return h
}
