package demo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Result is a chat that was run on both sides. Questions, Without and With are parallel, in execution order.
type Result struct {
	Engine, Policy string
	System         string
	K              int
	Questions      []Question
	Blocks         []BlockInfo // all retrieved blocks, in order of first appearance
	Without, With  []Sent

	code map[string]string // block ID → short name
}

// Question is one request with the blocks that were retrieved for it, best first.
type Question struct {
	Turn
	Retrieved []string // block IDs
}

// BlockInfo names a block.
type BlockInfo struct {
	Code, ID string
	Title    string // its first line
	Text     string
}

// Sent is how one request went out on one side, and what the engine said.
type Sent struct {
	Full, Refs, LeftOut []string // block IDs: in full in prompt order, as references, not at all
	Reordered           bool
	Text                string // this turn's message
	Parts               []Part // the whole prompt
	Prompt, Cached      int    // tokens, as the engine counts them
	CachedKnown         bool
	TTFT                time.Duration
	Answer              string
}

// Computed returns the prompt tokens that did not come from the cache.
func (s Sent) Computed() int { return s.Prompt - s.Cached }

// PartKind says what a part of a prompt is.
type PartKind string

// The parts of a prompt, in the order in which they stand in it.
const (
	SystemPart   PartKind = "system"
	HistoryPart  PartKind = "history"
	BlockPart    PartKind = "block"
	RefPart      PartKind = "reference"
	NotePart     PartKind = "order note"
	QuestionPart PartKind = "question"
)

// Part is a piece of a prompt; Tokens are counted by Config.Tokenizer.
type Part struct {
	Kind   PartKind
	Block  string // ID, of blocks and references
	Tokens int
}

// catalog gives the blocks short names.
func (r *Result) catalog(questions []retrieved) {
	r.code = map[string]string{}
	for _, q := range questions {
		var ids []string
		for _, b := range q.blocks {
			ids = append(ids, b.ID)
			if _, known := r.code[b.ID]; known {
				continue
			}
			title, _, _ := strings.Cut(b.Text, "\n")
			info := BlockInfo{Code: "B" + strconv.Itoa(len(r.Blocks)+1), ID: b.ID, Title: title, Text: b.Text}
			r.code[b.ID] = info.Code
			r.Blocks = append(r.Blocks, info)
		}
		r.Questions = append(r.Questions, Question{q.Turn, ids})
	}
}

// Code returns the short name of a block.
func (r *Result) Code(id string) string { return r.code[id] }

// check holds both sides to what was retrieved.
func (r *Result) check() error {
	for i, q := range r.Questions {
		if !slices.Equal(r.Without[i].Full, q.Retrieved) {
			return fmt.Errorf("request %s: without ragpilot %v was sent, want the retrieved %v", q.ID(), r.Without[i].Full, q.Retrieved)
		}
		w := r.With[i]
		if got := slices.Concat(w.Full, w.Refs, w.LeftOut); !sameSet(got, q.Retrieved) {
			return fmt.Errorf("request %s: with ragpilot %v was sent, referred to or left out, want the retrieved %v", q.ID(), got, q.Retrieved)
		}
	}
	return nil
}

func sameSet(a, b []string) bool {
	x, y := slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(x, y)
}

// Totals adds up one side.
type Totals struct {
	Prompt, Cached, Computed int
	CachedKnown              bool // of every request
	TTFT                     time.Duration
	Refs, LeftOut, Reordered int
}

// Sum returns the totals of a side; TTFT is the mean.
func Sum(side []Sent) Totals {
	t := Totals{CachedKnown: true}
	for _, s := range side {
		t.Prompt += s.Prompt
		t.Cached += s.Cached
		t.Computed += s.Computed()
		t.CachedKnown = t.CachedKnown && s.CachedKnown
		t.TTFT += s.TTFT
		t.Refs += len(s.Refs)
		t.LeftOut += len(s.LeftOut)
		if s.Reordered {
			t.Reordered++
		}
	}
	t.TTFT /= time.Duration(max(1, len(side)))
	return t
}

// Saving returns the part of the prompt tokens that the engine did not have to compute with a pilot, compared to
// without; ok is false if an engine did not say how many tokens came from its cache.
func (r *Result) Saving() (share float64, ok bool) {
	without, with := Sum(r.Without), Sum(r.With)
	if !without.CachedKnown || !with.CachedKnown || without.Computed == 0 {
		return 0, false
	}
	return 1 - float64(with.Computed)/float64(without.Computed), true
}

// Overlap returns the mean over consecutive requests of the part of a request's blocks that the request before
// it had too. A request without blocks is left out.
func (r *Result) Overlap() float64 {
	sum, n := 0.0, 0
	for i := 1; i < len(r.Questions); i++ {
		before := r.Questions[i-1].Retrieved
		now := r.Questions[i].Retrieved
		if len(now) == 0 {
			continue
		}
		shared := 0
		for _, id := range now {
			if slices.Contains(before, id) {
				shared++
			}
		}
		sum += float64(shared) / float64(len(now))
		n++
	}
	return sum / float64(max(1, n))
}
