package openai

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ragpilot/ragpilot/engines"
)

// delta is what one chunk of a stream, or a whole unstreamed answer, says.
type delta struct {
	id       string
	chosen   bool   // there is a first choice
	text     string // of the first choice; reasoning is not part of it
	finish   string
	counts   counts
	reported *StatusError // an error inside a 200 answer
}

// counts are an answer's token counts as far as they were given.
type counts struct {
	usage   *usageJSON
	timings *timingsJSON
}

type usageJSON struct {
	Prompt  *int `json:"prompt_tokens"`
	Output  *int `json:"completion_tokens"`
	Details *struct {
		Cached *int `json:"cached_tokens"` // null in vLLM and SGLang unless switched on
	} `json:"prompt_tokens_details"`
}

// timingsJSON is llama.cpp's own report, given with every answer. Releases without prompt_tokens_details have
// nothing else about the cache.
type timingsJSON struct {
	Cached   *int `json:"cache_n"`  // prompt tokens reused
	Computed *int `json:"prompt_n"` // prompt tokens processed, without the reused ones
	Output   *int `json:"predicted_n"`
}

type messageJSON struct {
	Content string `json:"content"`
}

type chunkJSON struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Choices []struct {
		Index   int         `json:"index"`
		Delta   messageJSON `json:"delta"`
		Message messageJSON `json:"message"` // in an answer that was not streamed
		Finish  string      `json:"finish_reason"`
	} `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Timings json.RawMessage `json:"timings"`
	Error   json.RawMessage `json:"error"`
	Message json.RawMessage `json:"message"` // the text of an "object":"error"
}

// decodeChunk reads one chunk. Text that cannot be read is an error, because the answer would have a hole;
// counts that cannot be read are left out, because no answer should fail over them.
func decodeChunk(data []byte) (delta, error) {
	var c chunkJSON
	if err := json.Unmarshal(data, &c); err != nil {
		return delta{}, fmt.Errorf("malformed chunk of %d bytes: %w", len(data), err)
	}
	d := delta{id: c.ID, reported: parseReported(c.Error)}
	if c.Object == "error" && d.reported == nil {
		d.reported = parseReported(data) // the whole chunk has the shape of an error
	}
	for i := range c.Choices {
		choice := &c.Choices[i]
		if choice.Index != 0 {
			continue
		}
		d.chosen = true
		d.text += choice.Delta.Content + choice.Message.Content
		if choice.Finish != "" {
			d.finish = choice.Finish
		}
	}
	d.counts.usage = decodeCounts[usageJSON](c.Usage)
	d.counts.timings = decodeCounts[timingsJSON](c.Timings)
	return d, nil
}

func decodeCounts[T usageJSON | timingsJSON](raw json.RawMessage) *T {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	t := new(T)
	if json.Unmarshal(raw, t) != nil {
		return nil
	}
	return t
}

// merge takes over what a later chunk reports. Servers that count in every chunk report running totals.
func (c *counts) merge(later counts) {
	if later.usage != nil {
		c.usage = later.usage
	}
	if later.timings != nil {
		c.timings = later.timings
	}
}

// result turns the counts into Usage: what the engine says in usage, else what follows from its timings.
func (c counts) result() engines.Usage {
	var prompt, output, cached *int
	if c.usage != nil {
		prompt, output = c.usage.Prompt, c.usage.Output
		if c.usage.Details != nil {
			cached = c.usage.Details.Cached
		}
	}
	if t := c.timings; t != nil {
		if cached == nil {
			cached = t.Cached
		}
		if prompt == nil && t.Cached != nil && t.Computed != nil {
			sum := *t.Cached + *t.Computed
			prompt = &sum
		}
		if output == nil {
			output = t.Output
		}
	}
	u := engines.Usage{PromptTokens: atLeast0(prompt), OutputTokens: atLeast0(output)}
	if cached != nil && *cached >= 0 {
		u.CachedTokens, u.CachedKnown = *cached, true
		if prompt != nil {
			// More than the prompt cannot have come from the cache, whatever the server says.
			u.CachedTokens = min(u.CachedTokens, u.PromptTokens)
		}
	}
	return u
}

func atLeast0(n *int) int {
	if n == nil {
		return 0
	}
	return max(*n, 0)
}
