package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/draw"
)

// DefaultSystem is the system message in front of every prompt.
const DefaultSystem = "Use the documents to answer the question in one short sentence."

// Layout is what an arm made of a row's blocks.
type Layout struct {
	// Sent are the blocks sent in full, in prompt order, and Refs those that became references: indexes into Row.Blocks.
	Sent []int `json:"sent"`
	Refs []int `json:"refs,omitempty"`
	// LeftOut are blocks that are not sent, because another one of the row says the same.
	LeftOut []int `json:"left_out,omitempty"`
	// Hint reports whether there is an order note.
	Hint bool `json:"hint,omitempty"`
	// Echo reports whether a block is shown once more.
	Echo bool `json:"echo,omitempty"`
	// Tokens is the estimated length of the messages, Expected the part that the pilot expects in the engine's cache.
	Tokens   int `json:"tokens"`
	Expected int `json:"expected"`
}

// Moved is the number of places by which the blocks sent in full stand from their rank among these, in the mean.
func (l *Layout) Moved() float64 {
	if len(l.Sent) == 0 {
		return 0
	}
	ranked := slices.Sorted(slices.Values(l.Sent))
	sum := 0
	for at, i := range l.Sent {
		rank, _ := slices.BinarySearch(ranked, i)
		sum += max(at-rank, rank-at)
	}
	return float64(sum) / float64(len(l.Sent))
}

// prompt is a row as one arm sends it.
type prompt struct {
	request engines.Request // messages, blocks and settings
	layout  Layout
	key     string // of the request
}

// desk plans the rows of one arm, one after the other, with a pilot of its own, as a program would: conversations send
// their whole history, with the rows' own answers, so that all arms see the same conversations. Not safe for concurrent use.
type desk struct {
	arm   Arm
	seed  uint64
	pilot *contextpilot.Pilot
	count contextpilot.Estimate
	head  []engines.Message
	talks map[string][]engines.Message     // without the head
	ends  map[string]contextpilot.Position // of the talks
	seen  map[string]bool                  // blocks by text, of arms that reuse them; beginnings of rows, of arms about cells
	cells [][]int                          // by row, the order of its cells; of arms about cells
}

func newDesk(arm Arm, seed uint64, system string) (*desk, error) {
	count := contextpilot.Estimate{}
	config, err := arm.Profile.Apply(contextpilot.Config{Tokenizer: count, Now: func() time.Time { return time.Unix(0, 0) }})
	if err != nil {
		return nil, fmt.Errorf("arm %s: %w", arm.Name, err)
	}
	pilot, err := contextpilot.New(config)
	if err != nil {
		return nil, fmt.Errorf("arm %s: %w", arm.Name, err)
	}
	d := &desk{
		arm: arm, seed: seed, pilot: pilot, count: count, talks: map[string][]engines.Message{},
		ends: map[string]contextpilot.Position{}, seen: map[string]bool{},
	}
	if system != "" {
		d.head = []engines.Message{{Role: engines.System, Content: system}}
	}
	return d, nil
}

// plan lays out the row at a place, and reports to the pilot that it was answered.
func (d *desk) plan(at int, row *Row) (prompt, error) {
	if d.arm.Cells != "" {
		return d.lines(row, d.cells[at]), nil
	}
	talk := d.talks[row.Session]
	req := contextpilot.Request{
		ID: row.ID, Query: row.Question, Fixed: d.arm.probes(),
		Blocks: make([]contextpilot.Block, len(row.Blocks)),
	}
	if row.Session != "" {
		req.Session, req.Behind = "s"+row.Session, d.ends[row.Session]
	}
	from := d.order(at, row)
	for i, k := range from {
		req.Blocks[i] = contextpilot.Block{ID: row.Blocks[k].ID, Text: row.Blocks[k].Text}
	}
	tokens := 0
	for _, m := range d.head {
		req.HeadTokens += d.count.Count(m.Content)
	}
	for _, m := range talk {
		req.Prior = append(req.Prior, m.Content)
		tokens += d.count.Count(m.Content)
	}
	plan := d.pilot.Plan(req)
	if plan.Fault != nil {
		return prompt{}, fmt.Errorf("arm %s, row %q: %w", d.arm.Name, row.ID, plan.Fault)
	}
	p := prompt{layout: Layout{Hint: plan.Hint != "", Echo: plan.Echo != nil, Expected: plan.Prefix.Tokens}}
	for _, it := range plan.Items {
		if it.Ref == nil {
			p.layout.Sent = append(p.layout.Sent, from[it.Index])
		} else {
			p.layout.Refs = append(p.layout.Refs, from[it.Index])
		}
	}
	for _, left := range plan.LeftOut {
		p.layout.LeftOut = append(p.layout.LeftOut, from[left.Index])
	}
	asked := engines.Message{Role: engines.User, Content: plan.Prompt(row.Question)}
	p.layout.Tokens = req.HeadTokens + tokens + d.count.Count(asked.Content)
	p.request.Messages = slices.Concat(d.head, talk, []engines.Message{asked})
	if d.arm.Reuse != nil {
		p.request.Blocks, p.request.Extra = engines.BlockSpans(len(p.request.Messages)-1, &plan), d.arm.Reuse.members()
		p.layout.Expected = d.reused(asked.Content, plan.Spans())
	}
	p.key = keyOf(p.request)
	answer := recited(row)
	d.pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID, Output: d.count.Count(answer)})
	if row.Session != "" {
		d.talks[row.Session] = append(slices.Clip(talk), asked, engines.Message{Role: engines.Assistant, Content: answer})
		d.ends[row.Session] = plan.End.Answered(d.count.Count(answer))
	}
	return p, nil
}

// lines lays out cells, one behind the other, and the question behind them. A beginning of whole cells that an earlier row had is expected
// in the cache.
func (d *desk) lines(row *Row, order []int) prompt {
	p := prompt{layout: Layout{Sent: order}}
	for _, m := range d.head {
		p.layout.Tokens += d.count.Count(m.Content)
	}
	if d.seen[""] {
		p.layout.Expected = p.layout.Tokens
	}
	d.seen[""] = true
	var text strings.Builder
	begin, known := sha256.New(), false
	for _, i := range order {
		cell := row.Blocks[i].Text
		text.WriteString(cell)
		fmt.Fprintf(begin, "%d %s", len(cell), cell)
		key := string(begin.Sum(nil))
		p.layout.Tokens += d.count.Count(cell)
		if known = d.seen[key]; known {
			p.layout.Expected = p.layout.Tokens
		}
		d.seen[key] = true
	}
	p.layout.Tokens += d.count.Count(row.Question)
	if known { // all rows are asked the same
		p.layout.Expected = p.layout.Tokens
	}
	p.request.Messages = slices.Concat(d.head, []engines.Message{{Role: engines.User, Content: text.String() + "\n" + row.Question}})
	p.key = keyOf(p.request)
	return p
}

// order is the order in which a row's blocks are handed to the pilot.
func (d *desk) order(at int, row *Row) []int {
	n := len(row.Blocks)
	if d.arm.Place != nil {
		return d.arm.Place.order(n, row.GoldRank())
	}
	if d.arm.Shuffle != 0 {
		return draw.Permutation[int](draw.New(d.seed, uint64(at)<<16^uint64(d.arm.Shuffle)), n)
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// recited is the row's own answer as later turns have it.
func recited(row *Row) string {
	if row.Lead == "" {
		return row.Answers[0]
	}
	return row.Lead + " " + row.Answers[0] + "."
}

// reused estimates how many tokens of a prompt an engine does not compute that reuses blocks.
func (d *desk) reused(prompt string, spans [][2]int) (tokens int) {
	for _, s := range spans {
		text := prompt[s[0]:s[1]]
		if d.seen[text] {
			tokens += int((1 - d.arm.Reuse.Recompute) * float64(d.count.Count(text)))
		}
		d.seen[text] = true
	}
	for _, m := range d.head {
		tokens += d.count.Count(m.Content)
	}
	return tokens
}

// keyOf is a hash of a request.
func keyOf(req engines.Request) string {
	h := sha256.New()
	if len(req.Extra) > 0 {
		fmt.Fprintf(h, "%v %s", req.Blocks, req.Extra)
	}
	for _, m := range req.Messages {
		fmt.Fprintf(h, "%d %s %d ", len(m.Role), m.Role, len(m.Content))
		_, _ = strings.NewReader(m.Content).WriteTo(h) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
