package ui_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/internal/gain"
	"github.com/ragpilot/ragpilot/internal/ui"
)

// noon is when the sample data ends.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// hostile is a text that must be shown and nothing else.
const hostile = `<script>window.broken = true</script><img src="http://evil.invalid/x" onerror="window.broken = true">&amp;`

// sample is a Source with made-up data. Each step adds requests, as a server would.
type sample struct {
	*ui.Recent
	random *rand.Rand
	mu     sync.Mutex
	now    time.Time
	n      int
	notice string
	bare   bool // nothing is measured, no engine is known
}

func newSample(steps int, o ui.Options) *sample {
	s := &sample{random: rand.New(rand.NewPCG(1, 2)), now: noon.Add(-time.Duration(steps) * 10 * time.Second), notice: "Sample data: no engine was measured."}
	o.Now = s.time
	s.Recent = ui.NewRecent(o)
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
	q := ui.Request{
		ID: fmt.Sprintf("%08x", 0x5eed0000+s.n*2654435), At: at, Tenant: "support", Session: fmt.Sprintf("chat-%03d", 100+s.random.IntN(12)),
		Path: "/v1/chat/completions", Model: "Qwen3-8B", HeldOut: heldOut, Documents: 12,
		PromptTokens: new(prompt), CachedTokens: new(cached), Predicted: new(min(prompt, max(0, cached+s.random.IntN(200)-120)/16*16)),
		TTFT: new(wait), Total: wait + .4 + s.random.Float64(),
	}
	if !heldOut {
		q.Reordered, q.LeftOut, q.Replaced = s.random.IntN(12), s.random.IntN(4), s.random.IntN(3)
		q.CharsSaved = 900*q.LeftOut + 350*q.Replaced
	}
	d := ui.Detail{Request: q, Before: &ui.Text{Text: documents(0, 1, 2, 3, 4)}, After: &ui.Text{Text: documents(0, 1, 2, 3, 4)}}
	if !heldOut {
		d.After.Text = strings.Replace(documents(2, 0, 4, 1, 3), "Returns are free", "[shown above, in tool result call_7]\nReturns are free", 1)
		d.Orders = []ui.Order{{Where: "system text", Sent: []int{2, 0, 4, 1, 3}}}
	}
	d.Stages = []ui.Stage{{Name: "read", Seconds: .0006}, {Name: "plan", Seconds: .0011}, {Name: "wait for the first byte", Seconds: wait - .0017}, {Name: "answer", Seconds: q.Total - wait}}
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

func (s *sample) Data() ui.Data {
	d := s.Recent.Data()
	d.Notice = s.notice
	if s.bare {
		return d
	}
	planned := d.Totals.Requests - d.Totals.HeldOut
	d.Saved.Tokens = ui.Measured(gain.Figure{Saved: 1512, Low: 1290, High: 1734, Samples: [2]int{d.Totals.HeldOut, planned}, OK: true})
	d.Saved.Seconds = ui.Measured(gain.Figure{Saved: .171, Low: .139, High: .203, Samples: [2]int{d.Totals.HeldOut, planned}, OK: true})
	d.Saved.Money = ui.Priced(d.Saved.Tokens, 0, "")
	d.Engines = []ui.Engine{
		{
			Name: "http://gpu-0:8000", Tokens: new(412_368), Capacity: new(655_360), Live: new(38), Evictions: new(1204),
			Prefixes: []ui.Prefix{{Name: "a91f, 12 documents", Tokens: 148_224, Live: 17}, {Name: "a91f, 8 documents", Tokens: 96_512, Live: 9}, {Name: "03c2, 20 documents", Tokens: 61_440, Live: 4}},
		},
		{Name: "http://gpu-1:8000", Tokens: new(268_800), Capacity: new(655_360), Live: new(21)},
	}
	return d
}

// fixed is a Source that says what it was given.
type fixed struct {
	data    ui.Data
	details map[string]ui.Detail
}

func (f fixed) Data() ui.Data { return f.data }

func (f fixed) Request(id string) (ui.Detail, bool) {
	d, ok := f.details[id]
	return d, ok
}
