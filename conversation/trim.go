package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"unicode"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

const (
	// maxCounts (about 3 MB) and maxSummaries bound what a [Trimmer] remembers. What is forgotten is counted, or summarised, again.
	maxCounts, maxSummaries = 1 << 16, 1 << 10
	// perCall is what chat templates put around a tool call or its result, at most.
	perCall = 24
)

// ErrTooLong is wrapped by errors of [Trimmer.Trim] that say that what cannot be cut exceeds the window.
var ErrTooLong = errors.New("does not fit the window")

// TrimOptions configure a [Trimmer]. Window must be set; the zero value of everything else is the recommended setup.
type TrimOptions struct {
	// Window is the number of tokens that the engine takes for a prompt and its answer together.
	Window int
	// Answer is what is kept free of it for the answer; bound the answers by the same number. 0: an eighth of Window.
	Answer int
	// Pinned is the number of first turns that are never cut. They take room from the rest for good: pin what it is about, not more.
	Pinned int
	// High is the number of prompt tokens that no prompt exceeds: the history is cut before one would. 0: Window − Answer.
	High int
	// Low is the number of prompt tokens that a cut leaves at most, without the new turn. 0: half of High.
	Low int
	// Summarize, if not nil, replaces messages that are cut by a short text; before is what it made of those that were cut before them.
	Summarize func(ctx context.Context, before string, cut []Message) (string, error)
	// SummaryTokens bounds that text; a longer one loses its end. 0: a sixteenth of Window.
	SummaryTokens int
	// PerMessage is the number of tokens that the engine's chat template puts around each message, and that open the answer. 0: 6,
	// which is enough for the templates of the Qwen, Llama 3 and ChatML families; negative: none.
	PerMessage int
	// Margin is by how much the tokenizer may be low, as a share of what it counts: 0.25 if 100 counted tokens may be 125.
	// 0: 0.25 if the tokenizer is [contextpilot.Estimate], otherwise it is taken to be exact; negative: exact in any case.
	Margin float64
}

// withDefaults completes and checks the options; High and Low become what may be counted by tokenizer.
func (o TrimOptions) withDefaults(tokenizer contextpilot.Tokenizer) (TrimOptions, error) {
	o.Answer = cmp.Or(o.Answer, o.Window/8)
	o.High = cmp.Or(o.High, o.Window-o.Answer)
	o.Low = cmp.Or(o.Low, o.High/2)
	o.SummaryTokens = cmp.Or(o.SummaryTokens, o.Window/16)
	o.PerMessage = max(cmp.Or(o.PerMessage, 6), 0)
	if min(o.Answer, o.Low, o.Pinned, o.SummaryTokens) < 0 || o.High <= 0 || o.Low > o.High || o.High > o.Window-o.Answer {
		return o, fmt.Errorf("conversation: TrimOptions: want 0 ≤ Low %d ≤ High %d ≤ Window %d − Answer %d, a High of at least 1, "+
			"and no negative Answer, Pinned %d or SummaryTokens %d", o.Low, o.High, o.Window, o.Answer, o.Pinned, o.SummaryTokens)
	}
	if _, estimate := tokenizer.(contextpilot.Estimate); estimate && o.Margin == 0 {
		o.Margin = 0.25
	}
	if o.Summarize == nil {
		o.SummaryTokens = 0 // no room is kept for it
	}
	share := 1 + max(o.Margin, 0)
	o.High, o.Low = int(float64(o.High)/share), int(float64(o.Low)/share)
	return o, nil
}

// Trimmer keeps the messages of conversations within an engine's window, in a way that its prefix cache survives, for programs
// that keep all messages and send them at every call. A history grows up to a high mark and is then cut down to a low mark at
// once: between two cuts each prompt begins with the whole prompt before it. The system prompt and pinned turns are never cut,
// and a tool's call and its results are never separated. A summary stands behind what is never cut, and changes only at a cut.
//
// Where a history is cut follows from its messages alone. So the cuts stay where they are from call to call, over restarts and
// replicas; only summaries are remembered, as far as they are not forgotten.
//
// If the tokenizer is exact, that is, never counts a message lower than the engine does, no prompt exceeds Window − Answer. With
// an estimate the bound holds as long as the estimate is low by no more than Margin. A Trimmer is safe for concurrent use.
type Trimmer struct {
	opt       TrimOptions
	tokenizer contextpilot.Tokenizer

	mu        sync.Mutex
	counts    *lru.Cache[xxh3.Uint128, int]    // guarded by mu
	summaries *lru.Cache[xxh3.Uint128, string] // guarded by mu
}

// Trimmed says what of a history is to be sent: messages [0, Head), the one at Alone if that is not negative, and those from Tail on.
type Trimmed struct {
	Head, Alone, Tail int
	// Summary, if not empty, is to be put in front of the text of the first message behind the head; it ends with an empty line.
	Summary string
	// Tokens is the length of the prompt as counted.
	Tokens int
	// SummaryErr is that of Summarize for a cut, which then has the summary of those before it, until a later call succeeds.
	SummaryErr error
}

// NewTrimmer returns a Trimmer that counts with a tokenizer; nil: [contextpilot.Estimate].
func NewTrimmer(tokenizer contextpilot.Tokenizer, o TrimOptions) (*Trimmer, error) {
	if tokenizer == nil {
		tokenizer = contextpilot.Estimate{}
	}
	o, err := o.withDefaults(tokenizer)
	if err != nil {
		return nil, err
	}
	return &Trimmer{
		opt: o, tokenizer: tokenizer,
		counts: lru.New[xxh3.Uint128, int](maxCounts), summaries: lru.New[xxh3.Uint128, string](maxSummaries),
	}, nil
}

// Trim says what of a history is to be sent, which ends with the user's message, or with the results of tool calls. It is
// taken to have been sent before each of the assistant's messages in it. Texts and names of tools are counted: arguments of calls
// are texts, too, which may be opaque. Errors wrap [ErrTooLong], or are those of ctx.
func (t *Trimmer) Trim(ctx context.Context, messages []Message) (Trimmed, error) {
	h := measure(messages, &t.opt, t.tokens)
	now, out := kept{-1, h.head}, Trimmed{Head: h.head}
	for n := 1; n <= len(messages); n++ {
		if n < len(messages) && h.who[n] != Assistant || h.size(now, n) <= t.opt.High {
			continue
		}
		next := h.cut(now, n)
		if next != now && t.opt.Summarize != nil {
			if err := t.summarize(ctx, gone(messages, now, next), &out); err != nil {
				return Trimmed{}, err
			}
		}
		now = next
	}
	out.Alone, out.Tail, out.Tokens = now.alone, now.tail, h.size(now, len(messages))
	if out.Tokens > t.opt.High {
		return Trimmed{}, fmt.Errorf("conversation: prompt of %d tokens: %w of %d", out.Tokens, ErrTooLong, t.opt.High)
	}
	return out, nil
}

// tokens returns the length of a message as it is sent.
func (t *Trimmer) tokens(m *Message) int {
	n := t.opt.PerMessage
	for _, c := range m.Calls {
		n += perCall + t.count(c.Tool)
	}
	for i := range m.Texts {
		n += t.count(m.Texts[i].Value)
		if m.Texts[i].Role == Tool {
			n += perCall + t.count(m.Texts[i].Tool)
		}
	}
	return n
}

// summarize replaces the summary by one that has also what leaves now.
func (t *Trimmer) summarize(ctx context.Context, cut []Message, out *Trimmed) error {
	before := strings.TrimSpace(out.Summary)
	key := summaryKey(before, cut)
	t.mu.Lock()
	known, ok := t.summaries.Get(key)
	t.mu.Unlock()
	if ok {
		out.Summary = known
		return nil
	}
	text, err := t.opt.Summarize(ctx, before, cut)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		out.SummaryErr = err
		return nil
	}
	out.Summary = t.shorten(text)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.summaries.Put(key, out.Summary)
	return nil
}

// summaryKey stands for all that a summary is made of.
func summaryKey(before string, cut []Message) xxh3.Uint128 {
	h := xxh3.New() // writing to it never fails
	_, _ = fmt.Fprintf(h, "%q", before)
	for _, m := range cut {
		_, _ = fmt.Fprintf(h, "\n%d%q", m.Role, m.Calls)
		for _, tx := range m.Texts {
			_, _ = fmt.Fprintf(h, " %d%q%q%q", tx.Role, tx.Value, tx.Call, tx.Tool)
		}
	}
	return h.Sum128()
}

// shorten returns the beginning of a summary that has at most SummaryTokens, ended by an empty line: whole lines or else whole words
// where that loses less than half of it.
func (t *Trimmer) shorten(text string) string {
	text = asLines(text)
	fits := func(end int) bool { return t.count(asLines(text[:end])) <= t.opt.SummaryTokens }
	if fits(len(text)) {
		return text
	}
	ends := make([]int, 0, len(text)) // where a character may be the last
	for i := range text {
		ends = append(ends, i)
	}
	most := sort.Search(len(ends), func(i int) bool { return !fits(ends[i]) }) - 1
	if most < 0 {
		return ""
	}
	text = text[:ends[most]]
	if i := strings.LastIndexByte(text, '\n'); i > len(text)/2 {
		text = text[:i]
	} else if i := strings.LastIndexFunc(text, unicode.IsSpace); i > len(text)/2 {
		text = text[:i]
	}
	return asLines(text)
}

// asLines ends a text that is not empty with an empty line.
func asLines(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return text + "\n\n"
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
	n = t.tokenizer.Count(text) // which may ask a server
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.Put(key, n)
	return n
}
