package eval

import (
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/lab/draw"
)

// Lengths of a chunk's text in tokens, by [contextpilot.Estimate]: one for every four bytes.
const (
	MinChunkTokens = 60
	MaxChunkTokens = 120
)

// chunk is one block of the pool, with what is said in it.
type chunk struct {
	Block
	entity string
	values []string // by relation
}

// newChunk writes a chunk about a thing of the family that no chunk so far is about.
func newChunk(r *draw.Random, f *family, id string, taken map[string]bool) chunk {
	c := chunk{Block: Block{ID: id}}
	for c.entity == "" || taken[c.entity] {
		c.entity = names[f.Entity](r)
	}
	taken[c.entity] = true
	sentences := []string{about(draw.Pick(r, f.Intro), c.entity)}
	c.values = make([]string, len(f.Relations))
	for _, i := range draw.Permutation[int](r, len(f.Relations)) {
		c.values[i] = names[f.Relations[i].Value](r)
		sentences = append(sentences, f.Relations[i].fact(c.entity, c.values[i]))
	}
	target := MinChunkTokens + r.Below(MaxChunkTokens-MinChunkTokens+1)
	c.Text = strings.Join(sentences, " ")
	for _, i := range draw.Permutation[int](r, len(f.Filler)) {
		longer := append(sentences, "")
		at := 1 + r.Below(len(sentences))
		copy(longer[at+1:], longer[at:])
		longer[at] = f.Filler[i]
		text := strings.Join(longer, " ")
		if n := (contextpilot.Estimate{}).Count(text); n > target && (contextpilot.Estimate{}).Count(c.Text) >= MinChunkTokens {
			break
		}
		c.Text, sentences = text, longer
	}
	return c
}

// prose is a sentence without facts.
func prose(r *draw.Random) string {
	return draw.Pick(r, words().Subjects) + " " + draw.Pick(r, words().Predicates) + " " + draw.Pick(r, words().Circumstances) + "."
}

// page writes a text of nearly so many tokens, and not more, of four bytes each: an opening, which may be empty, and behind it
// statements, in their order, among sentences without facts.
func page(r *draw.Random, tokens int, opening string, statements ...string) string {
	limit := 4 * tokens // bytes
	length := len(opening) + len(strings.Join(statements, " ")) + 1
	var fill []string
	for misses := 0; misses < 12; {
		s := prose(r)
		if length+1+len(s) > limit {
			misses++
			continue
		}
		fill, length = append(fill, s), length+1+len(s)
	}
	places := draw.Permutation[int](r, len(fill)+len(statements))[:len(statements)]
	slices.Sort(places)
	body := fill
	for i, at := range places {
		body = slices.Insert(body, at, statements[i])
	}
	if opening != "" {
		body = slices.Insert(body, 0, opening)
	}
	return strings.Join(body, " ")
}
