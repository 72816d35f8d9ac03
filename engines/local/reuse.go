package local

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local/internal/kvstore"
	"github.com/ragpilot/ragpilot/engines/local/internal/runner"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
)

// Values of [Config].Reuse.
const (
	ReusePrefix = "prefix" // prompts that begin alike share what is computed of their common beginning
	ReuseBlocks = "blocks" // blocks share, too, wherever they stand; of what is in front of the first one, the beginning
	ReuseHybrid = "hybrid" // the beginning as far as it goes, blocks behind it; all of it is exact where that computes no more
)

// checkReuse wants known names, and a part.
func checkReuse(mode, selector string, share float64) error {
	if modes := []string{ReusePrefix, ReuseBlocks, ReuseHybrid}; !slices.Contains(modes, mode) {
		return fmt.Errorf("reuse %q: want one of %s", mode, strings.Join(modes, ", "))
	}
	if !slices.Contains(runner.SelectorNames, selector) {
		return fmt.Errorf("selector %q: want one of %s", selector, strings.Join(runner.SelectorNames, ", "))
	}
	if !(share >= 0 && share <= 1) {
		return fmt.Errorf("recompute %g: want 0 to 1", share)
	}
	return nil
}

// Selectors are the names that [Config].Selector may have. The last three are for evaluations: they compute more than they save.
func Selectors() []string { return slices.Clone(runner.SelectorNames) }

// minBlock is how many tokens a block has at least that is kept by itself. Shorter ones are computed with what is around them.
const minBlock = kvstore.PageTokens

// TokenizeBlocks returns the tokens of a chat as Generate sends them to the model, and where its blocks are among them, as
// GenerateTokens takes both: without reuse, or behind a context, no blocks. The error wraps [engines.ErrRefused] if the blocks
// are wrong.
func (e *Engine) TokenizeBlocks(req engines.Request) ([]int32, []engines.BlockSpan, error) {
	messages, blocks := req.Messages, req.Blocks
	if len(messages) == 0 {
		return nil, nil, refused("messages []: want at least one")
	}
	if err := checkBlocks(messages, blocks); err != nil {
		return nil, nil, err
	}
	o, err := readOptions(req.Extra)
	if err != nil {
		return nil, nil, err
	}
	if o.Context != "" {
		tokens, err := e.TokenizeBehind(o.Context, messages)
		return tokens, nil, err
	}
	hasCut := func(m engines.Message) bool { return strings.Contains(m.Content, weights.Cut) }
	if len(blocks) == 0 || cmp.Or(o.Reuse, e.config.Reuse) == ReusePrefix || slices.ContainsFunc(messages, hasCut) {
		return e.TokenizeChat(messages), nil, nil
	}
	chat := slices.Clone(messages)
	for _, b := range slices.Backward(blocks) {
		m := &chat[b.Message]
		m.Content = m.Content[:b.From] + weights.Cut + m.Content[b.From:b.To] + weights.Cut + m.Content[b.To:]
	}
	tokens, cuts := e.file.ChatCut(chat, true)
	if len(cuts) != 2*len(blocks) { // the template leaves out what earlier answers thought
		return e.TokenizeChat(messages), nil, nil
	}
	spans := make([]engines.BlockSpan, len(blocks))
	for i := range spans {
		spans[i] = engines.BlockSpan{From: cuts[2*i], To: cuts[2*i+1]}
	}
	return tokens, spans, nil
}

// checkBlocks wants blocks in the order of the messages that do not overlap.
func checkBlocks(messages []engines.Message, blocks []engines.BlockSpan) error {
	var before engines.BlockSpan
	for i, b := range blocks {
		if b.Message < 0 || b.Message >= len(messages) {
			return refused("blocks[%d].message %d: there are %d messages", i, b.Message, len(messages))
		}
		text := messages[b.Message].Content
		switch {
		case b.From < 0 || b.To > len(text) || b.From >= b.To:
			return refused("blocks[%d] from %d to %d: message %d has %d bytes", i, b.From, b.To, b.Message, len(text))
		case !utf8.RuneStart(text[b.From]) || b.To < len(text) && !utf8.RuneStart(text[b.To]):
			return refused("blocks[%d] from %d to %d: not at whole characters of message %d", i, b.From, b.To, b.Message)
		case b.Message < before.Message || b.Message == before.Message && b.From < before.To:
			return refused("blocks[%d] from %d in message %d: it is not behind the block before it", i, b.From, b.Message)
		}
		before = b
	}
	return nil
}

// reuse is how the blocks of a prompt in tokens are reused, nil if they are not.
func (e *Engine) reuse(tokens []int32, o options, blocks []engines.BlockSpan) (*runner.Reuse, error) {
	mode, selector, share := cmp.Or(o.Reuse, e.config.Reuse), cmp.Or(o.Selector, e.config.Selector), e.config.Recompute
	if o.Recompute != nil {
		share = *o.Recompute
	}
	if err := checkReuse(mode, selector, share); err != nil {
		return nil, refused("%w", err)
	}
	r := &runner.Reuse{Share: share, Selector: runner.Selector(slices.Index(runner.SelectorNames, selector))}
	end, within := 0, 0
	for i, b := range blocks {
		if b.From < end || b.To <= b.From || b.To > len(tokens) {
			return nil, refused("blocks[%d] from %d to %d: want tokens behind %d, of %d", i, b.From, b.To, end, len(tokens))
		}
		if end = b.To; b.To-b.From >= minBlock {
			r.Blocks = append(r.Blocks, runner.Extent{From: b.From, To: b.To})
			within += b.To - b.From
		}
	}
	if mode == ReusePrefix || len(r.Blocks) == 0 {
		return nil, nil
	}
	r.Head, end = r.Blocks[0].From, r.Blocks[len(r.Blocks)-1].To
	if end == len(tokens) { // nothing looks at the blocks
		return nil, nil
	}
	r.Exact = r.Head
	if mode == ReuseHybrid {
		r.Exact = end
		exact := e.runner.Prefix(tokens, o.CacheSalt)
		beyond := 0.0
		for _, b := range r.Blocks {
			beyond += float64(max(0, b.To-max(b.From, exact)))
		}
		again := float64(max(0, end-r.Head-within)) + r.Share*beyond + 2*float64(len(tokens)-end) // what lies between, a part, and the rest twice
		if float64(len(tokens)-exact) <= again {
			return nil, nil
		}
	}
	return r, nil
}

// Warm computes the blocks of a request that are not in the cache, each behind what stands in front of the first, and nothing else: a
// later request with [Config].Reuse finds them at any place. Errors are those of Generate.
func (e *Engine) Warm(ctx context.Context, req engines.Request) error {
	id := e.name(req.ID)
	req.Extra = extraReuse(req.Extra)
	tokens, blocks, err := e.TokenizeBlocks(req)
	if err != nil {
		return e.failed(id, err)
	}
	p, err := e.prepare(req, append(tokens, 0), blocks) // something stands behind the blocks
	if err != nil {
		return e.failed(id, err)
	}
	e.warm(ctx, &p.request)
	if err := ctx.Err(); err != nil {
		return e.failed(id, err)
	}
	return nil
}

// warm computes the blocks of a request that are not there. It returns early if the request is cancelled.
func (e *Engine) warm(ctx context.Context, request *runner.Request) {
	if request.Reuse == nil {
		return
	}
	var runs []*runner.Run
	for _, b := range request.Reuse.Blocks {
		// The page with a prompt's last token is never found: one more token has all of the block's pages found.
		tokens := append(runner.BlockTokens(request.Prompt, request.Reuse.Head, b), 0)
		if len(tokens) > e.capacity || e.runner.Prefix(tokens, request.Salt) == len(tokens)-1 {
			continue
		}
		runs = append(runs, e.runner.Submit(runner.Request{Prompt: tokens, Salt: request.Salt, Forced: []int32{}, OnLogits: func([]float32) {}}))
	}
	for _, run := range runs {
		_, _, _ = run.Next(ctx) // a block that could not be computed is computed with the prompt
		run.Cancel(context.Canceled)
	}
}
