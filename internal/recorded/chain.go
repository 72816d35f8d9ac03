package recorded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DefaultHint is the wording of a reference to an earlier turn.
const DefaultHint = "Please refer to [Doc {doc_id}] from the previous conversation turn."

// Chains de-duplicates along chains of requests: a doc that any ancestor of the parent had is overlapping. It
// sees IDs only, not messages; where the messages are known, contextpilot's de-duplication checks them instead.
// At most limit turns are remembered, the oldest are forgotten first. Not safe for concurrent use.
type Chains[D comparable] struct {
	limit int
	turns map[string]*turn[D]
	queue []string // turn IDs, oldest first
}

type turn[D comparable] struct {
	parent string
	docs   []D
	depth  int
}

// Deduped is one turn's outcome. Sources names the request that showed an overlapping doc.
type Deduped[D comparable] struct {
	New, Overlapping []D
	Hints            []string
	Sources          map[D]string
	IsNew            bool
}

// NewChains returns an empty record of at most limit turns (at least 1).
func NewChains[D comparable](limit int) *Chains[D] {
	return &Chains[D]{limit: max(limit, 1), turns: map[string]*turn[D]{}}
}

// Add records the turn id after parent ("" or unknown: a new conversation) and tells which of its docs the
// chain has shown. template may use {doc_id}, {turn_number} and {source_request}; any other placeholder is an
// error, and then nothing is recorded.
func (c *Chains[D]) Add(id, parent string, docs []D, template string) (Deduped[D], error) {
	if template == "" {
		template = DefaultHint
	}
	if err := checkTemplate(template); err != nil {
		return Deduped[D]{}, err
	}
	out := Deduped[D]{New: []D{}, Overlapping: []D{}, Hints: []string{}, Sources: map[D]string{}}
	up, known := c.turns[parent]
	out.IsNew = !known
	depth := 1
	if known {
		depth = up.depth + 1
	}
	for _, d := range docs {
		src := c.shown(parent, d)
		if src == "" {
			out.New = append(out.New, d)
			continue
		}
		out.Overlapping = append(out.Overlapping, d)
		out.Sources[d] = src
		out.Hints = append(out.Hints, strings.NewReplacer("{doc_id}", fmt.Sprint(d),
			"{turn_number}", strconv.Itoa(c.turns[src].depth), "{source_request}", src).Replace(template))
	}
	if _, again := c.turns[id]; !again {
		c.queue = append(c.queue, id)
	}
	c.turns[id] = &turn[D]{parent: parent, docs: docs, depth: depth}
	for len(c.queue) > c.limit {
		delete(c.turns, c.queue[0])
		c.queue = c.queue[1:]
	}
	return out, nil
}

// shown returns the earliest request of the chain that ends in id and that had the doc.
func (c *Chains[D]) shown(id string, d D) string {
	src := ""
	for t := c.turns[id]; t != nil; {
		if slices.Contains(t.docs, d) {
			src = id
		}
		id = t.parent
		up := c.turns[id]
		if up != nil && up.depth >= t.depth {
			break // an ID that was used again: its new turn is no ancestor
		}
		t = up
	}
	return src
}

func checkTemplate(s string) error {
	for rest := s; ; {
		i := strings.IndexByte(rest, '{')
		if i < 0 {
			return nil
		}
		j := strings.IndexByte(rest[i:], '}')
		if j < 0 {
			return nil
		}
		switch name := rest[i : i+j+1]; name {
		case "{doc_id}", "{turn_number}", "{source_request}":
		default:
			return fmt.Errorf("hint_template: unknown placeholder %s", name)
		}
		rest = rest[i+j+1:]
	}
}
