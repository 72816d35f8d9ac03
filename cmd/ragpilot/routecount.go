package main

import (
	"fmt"
	"math"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/lab/load"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// counts is a tokenizer that has asked a server for the texts of a trace beforehand, so that planning does not wait for one that is
// busy. Other texts, such as notes, count as by [tokens.Count], in the server's measure on average.
type counts struct {
	known map[string]int
	scale float64 // the server's tokens for each one of ours
}

var _ contextpilot.Tokenizer = counts{}

func (c counts) Count(text string) int {
	if n, ok := c.known[text]; ok {
		return n
	}
	return int(math.Round(c.scale * float64(tokens.Count(text))))
}

// countTimeout bounds one question to the server.
const countTimeout = 10 * time.Second

// countAll asks for all texts that the job's prompts are made of.
func countAll(server *openai.Engine, j load.Job) (counts, error) {
	t, err := server.Tokenizer(openai.TokenizerConfig{Timeout: countTimeout})
	if err != nil {
		return counts{}, err
	}
	c := counts{known: map[string]int{}}
	ours, theirs := 0, 0
	count := func(text string) {
		if _, ok := c.known[text]; !ok {
			c.known[text] = t.Count(text)
			ours += tokens.Count(text)
			theirs += c.known[text]
		}
	}
	count(trace.System)
	for _, q := range j.Trace {
		for _, id := range q.Docs {
			if text, ok := j.Blocks.Text(id); ok {
				count(trace.Doc(id, text))
			}
		}
		count(trace.Question(q.Query))
		count(trace.Answer(q))
	}
	if n := t.Stats().Estimated; n > 0 {
		return counts{}, fmt.Errorf("%s: %d texts were not counted", server.Name(), n)
	}
	c.scale = float64(theirs) / float64(max(ours, 1))
	return c, nil
}
