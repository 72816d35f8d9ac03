package history

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// Bounds of what a [Trimmer] remembers. What is forgotten is counted, or summarised, again.
const (
	maxCounts    = 1 << 16 // texts whose tokens are known, about 3 MB
	maxSummaries = 1 << 10
)

// Trimmer cuts histories for programs that keep them whole and send them at every call, as agents and most chat programs do.
// It keeps no state of conversations: where a history is cut follows from the history alone, as if a [Chat] had grown with
// it. So the cuts stay where they are from call to call, over restarts and replicas; only summaries are remembered, as far as
// they are not forgotten. It is safe for concurrent use.
type Trimmer struct {
	cfg       Config
	tokenizer contextpilot.Tokenizer

	mu        sync.Mutex
	counts    *lru.Cache[xxh3.Uint128, int]    // guarded by mu
	summaries *lru.Cache[xxh3.Uint128, string] // guarded by mu
}

// Trimmed says what of a history is to be sent: messages [0, Head), the one at Alone if that is not negative, and those
// from Tail on.
type Trimmed struct {
	Head, Alone, Tail int
	// Summary, if not empty, is to be put in front of the text of the first message behind the head; it ends with an empty
	// line.
	Summary string
	// Tokens is the length of the prompt as counted.
	Tokens int
	// SummaryErr is the error of Config.Summarize, if it failed for a cut of this history. The cut then has the summary of
	// those before it.
	SummaryErr error
}

// NewTrimmer returns a Trimmer. System, Session, Scope and Blocks of the configuration are not used: leading system messages
// are part of the head, and blocks are in the messages. Errors wrap [ErrBadConfig].
func NewTrimmer(tokenizer contextpilot.Tokenizer, cfg Config) (*Trimmer, error) {
	if tokenizer == nil {
		tokenizer = contextpilot.Estimate{}
	}
	cfg, err := cfg.withDefaults(tokenizer)
	if err != nil {
		return nil, err
	}
	return &Trimmer{
		cfg: cfg, tokenizer: tokenizer,
		counts: lru.New[xxh3.Uint128, int](maxCounts), summaries: lru.New[xxh3.Uint128, string](maxSummaries),
	}, nil
}

// Trim says what of a history is to be sent, which ends with the user's message, or with the results of tool calls. It is
// taken to have been sent before each of the assistant's messages in it. Errors wrap [ErrTooLong], or are those of ctx.
func (t *Trimmer) Trim(ctx context.Context, messages []Message) (Trimmed, error) {
	h := t.measure(messages)
	out := Trimmed{Head: h.now.head, Alone: -1, Tail: h.now.tail}
	for n := 1; n <= len(messages); n++ {
		if n < len(messages) && messages[n].Role != Assistant || h.size(h.now, n) <= t.cfg.High {
			continue
		}
		before := h.now
		h.cut(n)
		if h.now == before {
			continue
		}
		if err := t.summarize(ctx, h, before, &out); err != nil {
			return Trimmed{}, err
		}
	}
	out.Alone, out.Tail, out.Tokens = h.now.alone, h.now.tail, h.size(h.now, len(messages))
	if out.Tokens > t.cfg.High {
		return Trimmed{}, fmt.Errorf("prompt of %d tokens: %w of %d", out.Tokens, ErrTooLong, t.cfg.High)
	}
	return out, nil
}

// replay follows a history from its beginning.
type replay struct {
	cfg      *Config
	messages []Message
	ok       []bool
	upTo     []int // tokens of the messages in front
	reserved int   // for a summary, as soon as something was cut
	now      kept
}

func (t *Trimmer) measure(messages []Message) *replay {
	role := func(i int) Role { return messages[i].Role }
	head := headEnd(len(messages), role, t.cfg.Pinned)
	h := &replay{cfg: &t.cfg, messages: messages, ok: joints(messages), upTo: make([]int, len(messages)+1), now: kept{head, -1, head}}
	for i, m := range messages {
		h.upTo[i+1] = h.upTo[i] + t.count(m.Text) + m.Extra + t.cfg.PerMessage
	}
	if t.cfg.Summarize != nil {
		h.reserved = t.cfg.SummaryTokens
	}
	return h
}

// size returns the tokens of the first n messages' prompt with a cut.
func (h *replay) size(k kept, n int) int {
	tokens := h.cfg.PerMessage // opens the answer
	if k.tail >= n {           // nothing is cut, for the head is all
		return tokens + h.upTo[n]
	}
	tokens += h.upTo[k.head] + h.upTo[n] - h.upTo[k.tail]
	if k.alone >= 0 {
		tokens += h.upTo[k.alone+1] - h.upTo[k.alone]
	}
	if k.tail > k.head {
		tokens += h.reserved
	}
	return tokens
}

// cut moves the cut of the first n messages on.
func (h *replay) cut(n int) {
	open := lastUser(n, func(i int) Role { return h.messages[i].Role })
	if open < h.now.head || open >= n {
		return
	}
	turn := h.upTo[n] - h.upTo[open]
	c := cut{
		messages: h.messages[:n], ok: h.ok[:n+1], now: h.now, open: open,
		target: min(h.cfg.Low+turn, h.cfg.High), inner: h.cfg.Low, most: h.cfg.High,
		size: func(k kept) int { return h.size(k, n) },
	}
	h.now = c.choose()
}

// summarize replaces the summary by that of what the cut has left out since before.
func (t *Trimmer) summarize(ctx context.Context, h *replay, before kept, out *Trimmed) error {
	if t.cfg.Summarize == nil {
		return nil
	}
	var gone []Message
	if before.alone >= 0 && before.alone != h.now.alone {
		gone = append(gone, h.messages[before.alone])
	}
	for i := before.tail; i < h.now.tail; i++ {
		if i != h.now.alone {
			gone = append(gone, h.messages[i])
		}
	}
	c := Cut{Summary: strings.TrimSpace(out.Summary), Messages: gone}
	key := c.hash()
	if text, ok := t.known(key); ok {
		out.Summary = text
		return nil
	}
	text, err := t.cfg.Summarize(ctx, c)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		out.SummaryErr = err
		return nil
	}
	out.Summary = shorten(asLines(text), t.cfg.SummaryTokens, t.count)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.summaries.Put(key, out.Summary)
	return nil
}

func (t *Trimmer) known(key xxh3.Uint128) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.summaries.Get(key)
}

// hash identifies a cut by all that a summary is made of.
func (c *Cut) hash() xxh3.Uint128 {
	h := xxh3.New()
	write := func(s string) { _, _ = fmt.Fprintf(h, "%d:%s", len(s), s) } // never fails (hash.Hash)
	write(c.Summary)
	for _, m := range c.Messages {
		write(string(m.Role))
		write(m.Text)
	}
	return h.Sum128()
}

// count returns the tokens of a text, remembered from earlier calls.
func (t *Trimmer) count(text string) int {
	if text == "" {
		return 0
	}
	key := xxh3.HashString128(text)
	t.mu.Lock()
	n, ok := t.counts.Get(key)
	t.mu.Unlock()
	if ok {
		return n
	}
	n = t.tokenizer.Count(text)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.Put(key, n)
	return n
}
