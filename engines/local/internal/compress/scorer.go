package compress

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
)

// Scorer says how much the tokens of a part matter. It may compute behind the part, and its last tokens once more, and must leave it as
// it was. Scores are a number for each token of the part, with those of its head, in each layer and head: what is kept depends on their
// order within a head alone.
type Scorer interface {
	Score(ctx context.Context, p *Part) (Scores, error)
}

// Scores has the numbers of a layer in one slice: those of a head lie together.
type Scores [][]float32

// Always is the score of a token that is kept in any case.
var Always = float32(math.Inf(1))

// sinks are the first tokens of a text, which are kept in any case: much attention goes to them, whatever they say.
const sinks = 4

// Default is the name of the scorer to take.
const Default = "reference"

// RepeatedTokens is how many tokens of a text are repeated at a time (KVzip).
const RepeatedTokens = 2048

var scorers = map[string]Scorer{
	Default:  notes{form: reference, notes: true},
	"paper":  notes{form: paper, notes: true},
	"task":   notes{form: reference},
	"random": random{seed: 1},
	"recent": recent{},
	"snapkv": snapKV{window: 64, kernel: 5},
	"kvzip":  kvZip{chunk: RepeatedTokens, overlap: 8},
}

// Names returns the names of all scorers.
func Names() []string { return slices.Sorted(maps.Keys(scorers)) }

// ByName returns a scorer.
func ByName(name string) (Scorer, error) {
	s, ok := scorers[name]
	if !ok {
		return nil, fmt.Errorf("scorer %q: want one of %v", name, Names())
	}
	return s, nil
}

// NeedsNotes reports whether a scorer reads notes.
func NeedsNotes(s Scorer) bool { n, ok := s.(notes); return ok && n.notes }

// form is a way from what notes attend to to scores.
type form struct {
	compute.Probe      // its settings
	column        bool // the norm of a corpus token's values counts, too
}

var (
	// reference is what the authors' own code does: notes count more the more they see, the softmax has the notes in it, and scores are
	// multiplied by the norms of the corpus's values.
	reference = form{Probe: compute.Probe{Rows: compute.Position}, column: true}
	// paper is Eq. 3 to 5: the softmax is over the corpus alone, and each note counts by the norm of its own values.
	paper = form{Probe: compute.Probe{Rows: compute.ValueNorm, Within: true}}
)

// scores makes a layer's scores of what so many rows attended to.
func (f form) scores(p *compute.Probe, h compute.Heads, norms []float64, rows int) []float32 {
	out := make([]float32, len(p.Sums))
	mean := float64(rows) * float64(h.Query/h.KV)
	for head := range h.KV {
		for i := range p.Tokens {
			s := float64(p.Sums[head*p.Tokens+i]) / mean
			if f.column {
				s *= norms[head*p.Tokens+i]
			}
			out[head*p.Tokens+i] = float32(s)
		}
	}
	return out
}

// notes are scores by what notes attend to, or the prompt that asks for them.
type notes struct {
	form  form
	notes bool
}

func (s notes) Score(ctx context.Context, p *Part) (Scores, error) {
	h, n := p.model.Shape(), p.Tokens()
	rows, at := p.Prompt, n
	if s.notes {
		if _, err := p.forward(ctx, rows, n, nil, 0); err != nil {
			return nil, err
		}
		rows, at = p.Notes, n+len(rows)
	}
	if len(rows) == 0 {
		return nil, errors.New("no notes")
	}
	probes, err := p.attended(ctx, rows, at, n, s.form.Probe)
	if err != nil {
		return nil, err
	}
	all := make(Scores, len(probes))
	for layer, probe := range probes {
		var norms []float64
		if s.form.column {
			if norms, err = p.model.worker.ValueNorms(layer, p.pages, n); err != nil {
				return nil, err
			}
		}
		all[layer] = s.form.scores(probe, h, norms, len(rows))
	}
	all.force(h.KV, n, 0, sinks)
	return all, nil
}

// force has tokens from to to-1 kept in any case.
func (s Scores) force(heads, tokens, from, to int) {
	for _, layer := range s {
		for head := range heads {
			for i := from; i < min(to, tokens); i++ {
				layer[head*tokens+i] = Always
			}
		}
	}
}
