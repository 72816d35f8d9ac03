package trace

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// blockTokens is the size of a cache block in the evaluation, which keeps one free beside the longest prompt.
const blockTokens = 16

// Size is how many tokens a trace has when it is sent in retrieval order.
type Size struct {
	Alone   int // sum of all prompts, each by itself without its conversation's earlier turns
	Longest int // the longest prompt, earlier turns included, with its answer
	Plain   int // sum of all prompts, earlier turns included
}

// Measure returns the size of a trace. Without history, each prompt is sent without the earlier turns of its
// session. Requests must be in trace order and name known blocks.
func Measure(requests []Request, blocks *Blocks, history bool) (Size, error) {
	var s Size
	system := tokens.Count(System)
	docs := make(map[string]int) // block ID -> tokens
	sent := make(map[string]int) // session -> tokens of its last prompt and answer
	for _, q := range requests {
		n := system + tokens.Count(Question(q.Query))
		for _, id := range q.Docs {
			c, ok := docs[id]
			if !ok {
				text, known := blocks.Text(id)
				if !known {
					return Size{}, fmt.Errorf("request %q: unknown block %q", q.ID, id)
				}
				c = tokens.Count(Doc(id, text))
				docs[id] = c
			}
			n += c
		}
		answer := tokens.Count(Answer(q))
		s.Alone += n
		if before, ok := sent[q.Session]; ok && history {
			n += before - system
		}
		sent[q.Session] = n + answer
		s.Plain += n
		s.Longest = max(s.Longest, n+answer)
	}
	return s, nil
}

// CapacityTokens returns the cache size in tokens that spec stands for, 0 for unlimited. A spec is "unlimited"
// (or "inf", "0"), a number of tokens, or a share of the trace such as "20%": that part of [Size].Alone, but
// at least one block more than [Size].Longest, so that every prompt fits.
func CapacityTokens(spec string, requests []Request, blocks *Blocks, history bool) (int, error) {
	switch spec {
	case "unlimited", "inf", "0":
		return 0, nil
	}
	share, percent := strings.CutSuffix(spec, "%")
	if !percent {
		n, err := strconv.Atoi(spec)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("capacity %q: want unlimited, a number of tokens or a percentage", spec)
		}
		return n, nil
	}
	f, err := strconv.ParseFloat(share, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
		return 0, fmt.Errorf("capacity %q: want a percentage such as 20%%", spec)
	}
	s, err := Measure(requests, blocks, history)
	if err != nil {
		return 0, fmt.Errorf("capacity %q: %w", spec, err)
	}
	return max(int(float64(s.Alone)*f/100), s.Longest+blockTokens), nil
}
