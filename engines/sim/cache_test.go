package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// Sizes in tokens for the cases below, which are those of the evaluation's self-test.
var (
	systemTokens   = tokens.Count(trace.System)
	docTokens      = tokens.Count(trace.Doc("a", letterText("a")))
	questionTokens = tokens.Count(trace.Question("what is 1"))
)

const (
	block  = sim.DefaultBlockTokens
	filler = 40 // tokens of an answer that was not recorded
)

func letterText(letter string) string {
	words := make([]string, 40)
	for i := range words {
		words[i] = fmt.Sprintf("%s%d", letter, i)
	}
	return strings.Join(words, " ")
}

func letterBlocks(t *testing.T) *trace.Blocks {
	t.Helper()
	var list []trace.Block
	for _, c := range "abcdef" {
		list = append(list, trace.Block{ID: string(c), Text: letterText(string(c))})
	}
	blocks, err := trace.NewBlocks(list...)
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// ask makes the i-th request, for one document per letter.
func ask(i int, docs string) trace.Request {
	id := fmt.Sprintf("q%d", i)
	return trace.Request{ID: id, Session: id, Turn: 1, Query: fmt.Sprintf("what is %d", i), Docs: strings.Split(docs, "")}
}

func turn(q trace.Request, session string, n int) trace.Request {
	q.Session, q.Turn = session, n
	return q
}

func run(t *testing.T, capacity int, plan []trace.Plan, requests ...trace.Request) ([]engines.Usage, sim.Stats) {
	t.Helper()
	e := sim.New(sim.Options{CapacityTokens: capacity, Reply: answering(requests)})
	usage := replay(t, e, requests, letterBlocks(t), plan, true)
	return usage, e.Stats()
}

func TestSameDocumentsShareThePrefix(t *testing.T) {
	usage, s := run(t, 0, nil, ask(1, "abc"), ask(2, "abc"))
	low := (systemTokens + 3*docTokens) / block * block
	if got := usage[1].CachedTokens; got < low || got > low+block {
		t.Errorf("cached %d tokens, want %d or a block more", got, low)
	}
	if want := 2 * (systemTokens + 3*docTokens + questionTokens); s.PromptTokens != want {
		t.Errorf("%d prompt tokens, want %d", s.PromptTokens, want)
	}
}

func TestAnotherOrderSharesTheSystemPromptOnly(t *testing.T) {
	usage, _ := run(t, 0, nil, ask(1, "abc"), ask(2, "bca"))
	if got, most := usage[1].CachedTokens, (systemTokens+2)/block*block; got > most {
		t.Errorf("cached %d tokens, want at most %d", got, most)
	}
	plan := []trace.Plan{{Docs: []string{"a", "b", "c"}}, {Docs: []string{"a", "b", "c"}, Hint: "order b c a"}}
	usage, _ = run(t, 0, plan, ask(1, "abc"), ask(2, "bca"))
	if got := usage[1].CachedTokens; got < systemTokens+5*docTokens/2 {
		t.Errorf("with the order repaired, cached %d tokens", got)
	}
}

func TestLastBlockOfARepeatedPromptIsComputed(t *testing.T) {
	first, second := ask(1, "a"), ask(2, "a")
	pad := (block - (systemTokens+docTokens+questionTokens)%block) % block
	first.Query = "what is 1" + strings.Repeat(" x", pad)
	second.Query = first.Query
	for _, capacity := range []int{0, 10_000} {
		usage, _ := run(t, capacity, nil, first, second)
		if n := usage[1].PromptTokens; n%block != 0 || usage[1].CachedTokens != n-block {
			t.Errorf("capacity %d: cached %d of %d tokens, want all but one block", capacity, usage[1].CachedTokens, n)
		}
	}
}

func TestNextTurnReusesPromptAndAnswer(t *testing.T) {
	usage, _ := run(t, 0, nil, turn(ask(1, "ab"), "s", 1), turn(ask(2, "cd"), "s", 2))
	n := systemTokens + 2*docTokens + questionTokens
	if want := (n + filler - 1) / block * block; usage[1].CachedTokens != want {
		t.Errorf("turn 2 cached %d tokens, want %d", usage[1].CachedTokens, want)
	}
	if want := n + filler + 2*docTokens + questionTokens; usage[1].PromptTokens != want {
		t.Errorf("turn 2 has %d tokens, want %d", usage[1].PromptTokens, want)
	}
}

func TestCapacity(t *testing.T) {
	requests := []trace.Request{ask(1, "ab"), ask(2, "cd"), ask(3, "ab")}
	one := systemTokens + 2*docTokens + questionTokens + filler + block
	if usage, _ := run(t, one, nil, requests...); usage[2].CachedTokens > systemTokens+2*block {
		t.Errorf("room for one prompt: cached %d tokens", usage[2].CachedTokens)
	}
	if usage, _ := run(t, 3*one, nil, requests...); usage[2].CachedTokens < systemTokens+3*docTokens/2 {
		t.Errorf("room for three: cached %d tokens", usage[2].CachedTokens)
	}
	_, large := run(t, 1_000_000, nil, requests...)
	_, unlimited := run(t, 0, nil, requests...)
	if large.HitTokens != unlimited.HitTokens || large.EvictedBlocks != 0 {
		t.Errorf("a large cache: %+v, an unlimited one: %+v", large, unlimited)
	}
}

// numbered makes a prompt of n blocks with tokens of its own and one token more. The name has at most three characters,
// so that each word is one token.
func numbered(name string, n int) engines.Request {
	words := make([]string, n*block+1)
	for i := range words {
		words[i] = fmt.Sprintf("%s%d", name, i)
	}
	return engines.Request{Messages: []engines.Message{{Role: engines.User, Content: strings.Join(words, " ")}}}
}

// silent answers nothing, so that a prompt of n blocks and one token takes n blocks.
func silent(capacityBlocks int) *sim.Engine {
	return sim.New(sim.Options{CapacityTokens: capacityBlocks * block, Reply: func(engines.Request) string { return "" }})
}

func cached(t *testing.T, e *sim.Engine, req engines.Request) int {
	t.Helper()
	response, err := e.Generate(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return response.Usage.CachedTokens / block
}

func TestTailGoesFirst(t *testing.T) {
	e := silent(8)
	for i, step := range []struct {
		req  engines.Request
		want int
	}{{numbered("a", 6), 0}, {numbered("b", 4), 0}, {numbered("a", 6), 4}} {
		if got := cached(t, e, step.req); got != step.want {
			t.Errorf("request %d read %d blocks from the cache, want %d", i+1, got, step.want)
		}
	}
}

func TestOversize(t *testing.T) {
	e := silent(4)
	cached(t, e, numbered("a", 3))
	if got := cached(t, e, numbered("a", 5)); got != 0 {
		t.Errorf("a prompt that does not fit read %d blocks", got)
	}
	if s := e.Stats(); s.Oversize != 1 || s.ResidentBlocks != 3 || s.EvictedBlocks != 0 {
		t.Errorf("%+v, want one oversize request that left the cache alone", s)
	}
	if got := cached(t, e, numbered("a", 4)); got != 3 {
		t.Errorf("afterwards %d blocks were read, want 3", got)
	}
}

// TestRepeatsDoNotGrowAnUnlimitedCache: the last block of a repeated prompt is computed again each time, but not kept.
func TestRepeatsDoNotGrowAnUnlimitedCache(t *testing.T) {
	e := sim.New(sim.Options{})
	words := strings.Repeat("word ", 4*block)
	for range 100 {
		cached(t, e, engines.Request{Messages: []engines.Message{{Content: words}}})
	}
	if n := e.Slots(); n > 8 {
		t.Errorf("100 times the same four blocks take %d", n)
	}
}

func TestReset(t *testing.T) {
	e := silent(8)
	req := numbered("a", 3)
	cached(t, e, req)
	if got := e.Resident(req); got != 3*block {
		t.Errorf("Resident = %d, want %d", got, 3*block)
	}
	e.Reset()
	if got, s := e.Resident(req), e.Stats(); got != 0 || s.ResidentBlocks != 0 || s.EvictedBlocks != 0 || s.Requests != 1 {
		t.Errorf("after Reset: %d resident, %+v", got, s)
	}
	if got := cached(t, e, req); got != 0 {
		t.Errorf("after Reset %d blocks were read", got)
	}
	if got := cached(t, e, req); got != 3 {
		t.Errorf("once computed again %d blocks were read, want 3", got)
	}
}
