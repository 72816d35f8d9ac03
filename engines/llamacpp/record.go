package llamacpp

import (
	"encoding/json"
	"time"
)

// record collects what the chunks of one answer have beside its text.
type record struct {
	begun  bool    // the server has read the prompt
	answer []token // generated tokens by their place, unknown where none was given
	count  int     // of generated tokens, -1: not known
	slot   int     // that ran the request, -1: not known
	length int     // of the slot afterwards, -1: not known

	computed int // tokens of the prompt that were not cached, 0: not known
	took     time.Duration
}

func newRecord() record { return record{count: -1, slot: -1, length: -1} }

type chunkJSON struct {
	Choices []struct {
		Logprobs *struct {
			Content []struct {
				ID *token `json:"id"`
			} `json:"content"`
		} `json:"logprobs"`
	} `json:"choices"`
	Timings *struct {
		Generated *int    `json:"predicted_n"`
		Computed  int     `json:"prompt_n"`
		Took      float64 `json:"prompt_ms"`
	} `json:"timings"`
	Verbose *struct {
		Slot   *int `json:"id_slot"`
		Length *int `json:"tokens_cached"`
	} `json:"__verbose"`
}

// maxAnswer bounds what a server's count can make the record hold.
const maxAnswer = 1 << 24

// add reads one chunk. What cannot be read is left to package openai, which reads it too.
func (r *record) add(data []byte) {
	var c chunkJSON
	if json.Unmarshal(data, &c) != nil {
		return
	}
	if v := c.Verbose; v != nil {
		if v.Slot != nil && *v.Slot >= 0 {
			r.slot = *v.Slot
		}
		if v.Length != nil && *v.Length >= 0 {
			r.length = *v.Length
		}
	}
	if t := c.Timings; t != nil && t.Took >= 0 && t.Took < 1e9 {
		r.computed, r.took = t.Computed, time.Duration(t.Took*float64(time.Millisecond))
	}
	if c.Timings != nil && c.Timings.Generated != nil && *c.Timings.Generated <= maxAnswer {
		r.count = max(r.count, *c.Timings.Generated)
	}
	if len(c.Choices) == 0 {
		return
	}
	r.begun = true
	if l := c.Choices[0].Logprobs; l != nil && len(l.Content) == 1 && l.Content[0].ID != nil {
		r.put(r.count-1, *l.Content[0].ID)
	}
}

// put enters a generated token. Of two for one place neither is believed.
func (r *record) put(place int, t token) {
	if place < 0 {
		return
	}
	for len(r.answer) <= place {
		r.answer = append(r.answer, unknown)
	}
	if r.answer[place] != unknown && r.answer[place] != t {
		t = unknown
	}
	r.answer[place] = t
}

// kept returns the generated tokens that lie in the slot, as far as they are known: the last one generated was never read.
func (r *record) kept() []token {
	n := len(r.answer)
	if n == max(r.count, n) {
		n--
	}
	return known(r.answer[:max(n, 0)])
}

// whole reports whether kept has all.
func (r *record) whole() bool { return r.count >= 0 && len(r.kept()) == max(r.count-1, 0) }

// fill replaces what is unknown by the answer's text in tokens, if these agree with all that is known.
func (r *record) fill(text []token) {
	if len(text) != r.count && len(text) != r.count-1 { // the token that ended the answer has no text
		return
	}
	for i, t := range r.answer {
		if t != unknown && (i >= len(text) || text[i] != t) {
			return
		}
	}
	r.answer = text
}
