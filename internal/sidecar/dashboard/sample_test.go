package dashboard_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/savings"
)

// noon is when the sample data ends.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// hostile is a text that must be shown and nothing else.
const hostile = `<script>window.broken = true</script><img src="http://evil.invalid/x" onerror="window.broken = true">&amp;`

// sample is a Source with made-up data. Each step adds requests, as a server would.
type sample struct {
	*dashboard.Recent
	random *rand.Rand
	mu     sync.Mutex
	now    time.Time
	n      int
	notice string
	bare   bool // nothing is measured, no engine is known
	cloud  bool // in front of a provider, with prices
	extra  int  // prompts that came since
}

func newSample(steps int, o dashboard.Options) *sample {
	s := &sample{
		random: rand.New(rand.NewPCG(1, 2)),
		now:    noon.Add(-time.Duration(steps) * 10 * time.Second),
		notice: "Sample data: no engine was measured.",
	}
	o.Now = s.time
	s.Recent = dashboard.NewRecent(o)
	for range steps {
		s.step()
	}
	return s
}

func (s *sample) time() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// step lets ten seconds pass, and some requests in them.
func (s *sample) step() {
	at := s.time()
	for i := range 3 + s.random.IntN(4) {
		s.add(at.Add(time.Duration(i) * 1700 * time.Millisecond))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(10 * time.Second)
}

func (s *sample) add(at time.Time) {
	s.n++
	warm := 1 - 1/(1+float64(s.n)/40)
	prompt := 2600 + s.random.IntN(2600)
	share := min(.95, max(.02, warm*(.74+.16*s.random.NormFloat64())))
	heldOut := s.n%20 == 7
	if heldOut {
		share = max(.05, .31+.08*s.random.NormFloat64())
	}
	cached := int(share*float64(prompt)) / 16 * 16
	computed := float64(prompt - cached)
	wait := .021 + computed*.00011*(.9+.3*s.random.Float64())
	q := dashboard.Request{
		ID: fmt.Sprintf("%08x", 0x5eed0000+s.n*2654435), At: at, Tenant: "support", Session: fmt.Sprintf("chat-%03d", 100+s.random.IntN(12)),
		Path: "/v1/chat/completions", Model: "Qwen3-8B", Engine: []string{"e1", "e1", "e0"}[s.n%3], HeldOut: heldOut, Documents: 12,
		PromptTokens: new(prompt), CachedTokens: new(cached), Predicted: new(min(prompt, max(0, cached+s.random.IntN(200)-120)/16*16)),
		TTFT: new(wait), Total: wait + .4 + s.random.Float64(),
	}
	if !heldOut {
		q.Reordered, q.LeftOut, q.Replaced = s.random.IntN(12), s.random.IntN(4), s.random.IntN(3)
		q.CharsSaved = 900*q.LeftOut + 350*q.Replaced
	}
	d := dashboard.Detail{
		Request: q,
		Before:  &dashboard.Text{Text: documents(0, 1, 2, 3, 4)},
		After:   &dashboard.Text{Text: documents(0, 1, 2, 3, 4)},
	}
	if !heldOut {
		d.After.Text = strings.Replace(documents(2, 0, 4, 1, 3), "Returns are free", "[shown above, in tool result call_7]\nReturns are free", 1)
		d.Orders = []dashboard.Order{{Where: "system text", Sent: []int{2, 0, 4, 1, 3}}}
	}
	d.Stages = []dashboard.Stage{
		{Name: "read", Seconds: .0006},
		{Name: "plan", Seconds: .0011},
		{Name: "wait for the first byte", Seconds: wait - .0017},
		{Name: "answer", Seconds: q.Total - wait},
	}
	s.Add(d)
}

func documents(order ...int) string {
	texts := []string{
		"Refunds are paid within 14 days to the card that was used.",
		"Parcels to islands take two days longer.",
		"Returns are free within 30 days; the label is in the parcel.",
		"Gift cards are not refunded.",
		"Orders above 50 € are delivered free of charge.",
	}
	var b strings.Builder
	b.WriteString("── system ──\nAnswer from the documents alone.\n<documents>\n")
	for _, i := range order {
		fmt.Fprintf(&b, "<document id=%q>\n%s\n</document>\n", fmt.Sprintf("faq-%d", i+1), texts[i])
	}
	b.WriteString("</documents>\n\n── user ──\nUntil when can I send shoes back?")
	return b.String()
}

func (s *sample) Data() dashboard.Data {
	d := s.Recent.Data()
	d.Notice = s.notice
	if s.bare {
		return d
	}
	s.mu.Lock()
	cloud := s.cloud
	s.mu.Unlock()
	planned := d.Totals.Requests - d.Totals.HeldOut
	d.Saved.Tokens = dashboard.Measured(
		savings.Figure{Saved: 1512, Low: 1290, High: 1734, Samples: [2]int{d.Totals.HeldOut, planned}, OK: true},
	)
	d.Saved.Seconds = dashboard.Measured(
		savings.Figure{Saved: .171, Low: .139, High: .203, Samples: [2]int{d.Totals.HeldOut, planned}, OK: true},
	)
	if cloud {
		d.Saved.Money = dashboard.Priced(
			savings.Figure{Saved: .0041, Low: .0035, High: .0047, Samples: [2]int{d.Totals.HeldOut, planned}, OK: true},
			"USD",
		)
		d.Cloud = &dashboard.Cloud{
			Provider: "anthropic", Currency: "USD",
			Total: dashboard.Account{Answers: 300, Plain: 90_000, Read: 700_000, Written: 120_000, Output: 40_000, Cost: new(1.23), Saved: new(1.8)},
			Tenants: []dashboard.Account{
				{Tenant: "support", Answers: 280, Plain: 80_000, Read: 690_000, Written: 100_000, Output: 38_000, Cost: new(1.1), Saved: new(1.79)},
				{Tenant: "search", Answers: 20, Plain: 10_000, Read: 10_000, Written: 20_000, Output: 2000, Cost: new(.13), Saved: new(-.01)},
			},
		}
	}
	d.Misses = &dashboard.Misses{
		Compared: 310, Dropped: 2, Currency: "USD",
		Causes: []dashboard.Cause{
			{Source: "ragpilot", Cause: "clock", Misses: 12, Lost: 10_116, Money: new(.0273)},
			{Source: "anthropic", Cause: "tool-set", Misses: 1},
		},
		Last: []dashboard.Miss{
			{
				At: noon, ID: d.Requests[0].ID, Against: d.Requests[1].ID, Tenant: "support", Session: "chat-101", Source: "ragpilot", Cause: "clock",
				Path: "messages[0].content", Token: 12, Lost: new(843), Money: new(.0023), Was: "It is 10:41", Is: "It is 10:42",
			},
			{At: noon, ID: d.Requests[0].ID, Source: "anthropic", Cause: "tool-set", Reason: "tools_changed"},
			{At: noon, ID: d.Requests[2].ID, Source: "ragpilot", Cause: "evicted", Lost: new(2048)},
		},
	}
	d.Engines = []dashboard.Engine{
		{
			ID:       "e0",
			Name:     "gpu-0:8000, Qwen3-8B",
			Tenant:   "search",
			Front:    "03c2a17be55d0f61",
			Tokens:   new(96_512),
			Live:     new(21),
			HitRatio: s.HitRatio("e0"),
		},
		{
			ID:       "e1",
			Name:     "gpu-0:8000, Qwen3-8B",
			Tenant:   "support",
			Front:    "a91f73c0d2b4e688",
			Tokens:   new(412_368),
			Capacity: new(655_360),
			Live:     new(38),
			HitRatio: s.HitRatio("e1"),
		},
	}
	d.Feeds = []dashboard.Feed{
		{Source: "gpu-0", Topic: "kv-events", Connected: true, Complete: true, Events: 48_212},
		{Source: "gpu-1", Since: new(noon.Add(-time.Minute)), Cause: "gap", Events: 310, Holes: 3, Problem: "connection refused"},
	}
	return d
}

// Picture makes up prompts that share their beginnings: of the live ones, some begin with another block at each place.
func (s *sample) Picture(id string) (dashboard.Picture, bool) {
	live, ok := map[string]int{"e0": 21, "e1": 38}[id]
	if !ok || s.bare {
		return dashboard.Picture{}, false
	}
	s.mu.Lock()
	live += s.extra
	s.mu.Unlock()
	p := dashboard.Picture{ID: id, Live: live, Seen: live, Blocks: 300, Samples: s.Samples(id)}
	random := rand.New(rand.NewPCG(3, uint64(len(id))))
	var add func(parent, end, requests, depth int)
	add = func(parent, end, requests, depth int) {
		for left, first := requests, true; left > 0 && depth < 6 && len(p.Parts) < dashboard.MaxParts; first = false {
			n := max(left*6/10, 1)
			if !first && depth == 0 {
				n = max(left/2, 1)
			}
			tokens := 180 + random.IntN(500)
			p.Parts = append(
				p.Parts,
				dashboard.Part{Name: fmt.Sprintf("%016x", random.Uint64()), Parent: parent, Tokens: tokens, End: end + tokens, Requests: n},
			)
			add(len(p.Parts)-1, end+tokens, n, depth+1)
			left -= n
		}
	}
	add(-1, 0, live, 0)
	return p, true
}

// fixed is a Source that says what it was given.
type fixed struct {
	data     dashboard.Data
	details  map[string]dashboard.Detail
	pictures map[string]dashboard.Picture
}

func (f fixed) Data() dashboard.Data { return f.data }

func (f fixed) Request(id string) (dashboard.Detail, bool) {
	d, ok := f.details[id]
	return d, ok
}

func (f fixed) Picture(id string) (dashboard.Picture, bool) {
	p, ok := f.pictures[id]
	return p, ok
}
