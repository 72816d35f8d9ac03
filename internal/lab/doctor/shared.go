package doctor

import (
	"context"
	"fmt"
	"strings"
)

// varied is a text that begins as another one does, for about three quarters of it, and goes on otherwise. kept is how many bytes
// they share.
func varied(text, nonce string) (other string, kept int) {
	kept = len(text) * 3 / 4
	if end := strings.LastIndexByte(text[:kept], '\n'); end > 0 {
		kept = end + 1
	}
	return text[:kept] + probeText(nonce, len(text)-kept), kept
}

// common is how many tokens two prompts share from the first on.
type common struct {
	tokens int
	exact  bool // counted on both prompts; else there may be more
}

// commonOf counts the tokens that the probe's prompt and another one share. A quarter of a text need not have a quarter of its
// tokens: the first line, a random number, has many. So the server's tokenizer is asked, for the chats or else for the shared text
// alone. Without one, only the half of what the bytes would give is taken for sure.
func (x *exam) commonOf(ctx context.Context, other string, kept int) common {
	if x.facts.template != nil && x.sameCount {
		a, err := x.facts.template(ctx, message(x.text))
		if err == nil {
			b, err := x.facts.template(ctx, message(other))
			if err == nil {
				return common{differ(a, b), true}
			}
		}
	}
	if x.facts.count != nil && !x.strange {
		if n, err := x.facts.count(ctx, x.text[:kept]); err == nil {
			return common{max(n-1, 0), false} // its last token may reach over the cut
		}
	}
	return common{x.second.usage.PromptTokens * kept / len(x.text) / 2, false}
}

// whole is how many of these tokens whole blocks have.
func (c common) whole(block int) int { return c.tokens / max(block, 1) * max(block, 1) }

// String says how many tokens are shared.
func (c common) String() string {
	if c.exact {
		return fmt.Sprintf("the same first %d tokens", c.tokens)
	}
	return fmt.Sprintf("at least the same first %d tokens", c.tokens)
}

// shared sends a prompt that has only its beginning in common with the first, and compares what was cached of it with the whole
// blocks in that beginning. One block less is well: speculative decoding computes the last one again.
func (x *exam) shared(ctx context.Context) {
	const name = "shared prefix"
	if !x.second.usage.CachedKnown {
		x.add(name, NotKnown, "answers do not report what was cached", "")
		return
	}
	if x.points {
		x.add(name, Warning, "the first prompt with the beginning of another one finds nothing of it, the next one does", x.keep())
		return
	}
	text, kept := varied(x.text, x.cfg.Nonce())
	a := x.ask(ctx, text, nil)
	if a.err != nil {
		x.add(name, NotKnown, short(a.err), "")
		return
	}
	c := x.commonOf(ctx, text, kept)
	cached, block := a.usage.CachedTokens, x.block.most
	if block == 0 {
		block = max(x.second.usage.CachedTokens, 1) // it is no longer
	}
	want := c.whole(block)
	saw := fmt.Sprintf("a prompt with %v: %d of them cached", c, cached)
	if n, ok := x.block.known(); ok && n > 1 {
		saw += fmt.Sprintf(", of %d in whole blocks of %d", want, block)
	}
	const few = "models with sliding windows or recurrent states keep few points to go on from: see the block size, or use a model with " +
		"full attention"
	switch {
	case cached >= want-block && cached > 0:
		x.add(name, OK, saw, "")
		return
	case want < 2*block && cached == 0:
		x.add(name, NotKnown, saw+": too few blocks for a verdict", "ask with more --probe-tokens")
		return
	}
	switch again := x.third(ctx, kept); {
	case again >= want-block && again > cached:
		x.add(name, Warning, fmt.Sprintf("%s; %d of another one after that", saw, again), x.keep())
	case cached >= want/2:
		x.add(name, Warning, saw, few)
	default:
		x.add(name, Problem, saw+", though a whole prompt is reused", few)
	}
}

// third sends one more prompt with the same beginning, and returns how much of it was cached; 0: it was not answered. Some engines keep
// points to go on from only where two prompts have parted.
func (x *exam) third(ctx context.Context, kept int) int {
	return x.ask(ctx, x.text[:kept]+probeText(x.cfg.Nonce(), len(x.text)-kept), nil).usage.CachedTokens
}

// keep is what to do where the second prompt with a beginning finds nothing, and the third one does.
func (x *exam) keep() string {
	do := "models with sliding windows or recurrent states keep points to go on from only where prompts have ended or parted: send a new " +
		"prefix by itself first, to warm it"
	if x.kind == VLLM {
		do += "; or keep points at an interval (--prefix-cache-retention-interval, a multiple of the block)"
	}
	return do
}
