package eval

import (
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
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
func newChunk(r *random, f *family, id string, taken map[string]bool) chunk {
	c := chunk{Block: Block{ID: id}}
	for c.entity == "" || taken[c.entity] {
		c.entity = names[f.Entity](r)
	}
	taken[c.entity] = true
	sentences := []string{about(pick(r, f.Intro), c.entity)}
	c.values = make([]string, len(f.Relations))
	for _, i := range r.permutation(len(f.Relations)) {
		c.values[i] = names[f.Relations[i].Value](r)
		sentences = append(sentences, f.Relations[i].fact(c.entity, c.values[i]))
	}
	target := MinChunkTokens + r.below(MaxChunkTokens-MinChunkTokens+1)
	c.Text = strings.Join(sentences, " ")
	for _, i := range r.permutation(len(f.Filler)) {
		longer := append(sentences, "")
		at := 1 + r.below(len(sentences))
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
