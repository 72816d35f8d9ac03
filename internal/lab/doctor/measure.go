package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// block is the length of a cache block in tokens. Where it could not be determined it is between least and most; both are 0 if nothing
// is known.
type block struct {
	least, most int
	cuts        int // prompts that it was measured with; 0: the server says it
}

// known returns the length, if there is only one that it can be.
func (b block) known() (n int, ok bool) { return b.least, b.least > 0 && b.least == b.most }

// String returns the length and where it is from.
func (b block) String() string {
	text := fmt.Sprintf("%d tokens", b.least)
	if b.least != b.most {
		text = fmt.Sprintf("%d to %d tokens", b.least, b.most)
	} else if b.least == 1 {
		text = "1 token"
	}
	if b.cuts > 0 {
		text += fmt.Sprintf(", measured with %d prompts", b.cuts)
	}
	return text
}

// mostCuts bounds the prompts that a block is measured with.
const mostCuts = 8

// measure finds out the length of a block from what is cached of shorter parts of the probe, where the server does not say it. What is
// cached is a multiple of the block, and what is shared and not cached is shorter than a block. Of each prompt some tokens are not
// shared, those of the chat template behind the text: about the same number each time, since the parts end behind a word.
func (x *exam) measure(ctx context.Context) {
	u := x.second.usage
	if x.facts.block > 0 || x.cfg.NoProbe || !u.CachedKnown {
		return
	}
	s := steps{common: u.CachedTokens, points: []point{{0, 0}, {len(x.text), u.PromptTokens}}}
	for i := range mostCuts {
		end := s.end(x.text, i)
		if end <= 0 {
			return
		}
		a := x.ask(ctx, x.text[:end], nil)
		if a.err != nil || !a.usage.CachedKnown {
			return
		}
		if i == 0 && a.usage.CachedTokens == 0 && x.third(ctx, end) > 0 {
			x.points = true // steps would be those of these points
			return
		}
		s.add(end, a.usage.PromptTokens, a.usage.CachedTokens)
		if can := s.can(); len(can) == 1 {
			x.block = block{can[0], can[0], i + 1}
			x.facts.block = can[0]
			return
		}
	}
	if can := s.can(); len(can) > 0 {
		x.block = block{can[0], can[len(can)-1], mostCuts}
	}
}

// point is the number of tokens of a prompt with a part of the text.
type point struct{ bytes, tokens int }

// steps is what measured prompts say about the length of a block.
type steps struct {
	common    int     // divisor of all that was cached
	low, high int     // tokens of a prompt that were not cached: the fewest and the most
	any       bool    // prompt was measured
	points    []point // ascending
}

// next is where the next part of the text is to end. If the block is as long as it can be, the part has about three eighths of a block
// less behind the end of a block than the one that has least so far. Either that is so, and after a few steps there is no such part; or
// it ends before that end, and five eighths of a block more are not cached.
func (s *steps) next(i int) int {
	all := s.points[len(s.points)-1]
	if i == 0 {
		return all.bytes / 2
	}
	tokens := all.tokens*2/3/s.common*s.common + s.low - s.common*(2+i%3)/8
	if tokens < all.tokens/4 {
		tokens += s.common
	}
	return s.bytes(min(tokens, all.tokens*19/20))
}

// end is the end of a word near there, where no part has ended yet: of the same prompt again all but one token would be shared.
func (s *steps) end(text string, i int) int {
	end := strings.LastIndexByte(text[:s.next(i)], ' ')
	for end > 0 && s.has(end) {
		end = strings.LastIndexByte(text[:end], ' ')
	}
	return end
}

// bytes is the length of the text that about so many tokens have.
func (s *steps) bytes(tokens int) int {
	i := 1
	for i < len(s.points)-1 && s.points[i].tokens < tokens {
		i++
	}
	a, b := s.points[i-1], s.points[i]
	n := a.bytes + (b.bytes-a.bytes)*(tokens-a.tokens)/max(b.tokens-a.tokens, 1)
	return min(max(n, 0), s.points[len(s.points)-1].bytes)
}

// has reports whether a part of that length was measured.
func (s *steps) has(bytes int) bool {
	return slices.ContainsFunc(s.points, func(p point) bool { return p.bytes == bytes })
}

func (s *steps) add(bytes, tokens, cached int) {
	left := tokens - cached
	if !s.any {
		s.low, s.high, s.any = left, left, true
	}
	s.low, s.high = min(s.low, left), max(s.high, left)
	i, _ := slices.BinarySearchFunc(s.points, bytes, func(p point, n int) int { return p.bytes - n })
	s.points = slices.Insert(s.points, i, point{bytes, tokens})
	a, b := s.common, cached
	for b > 0 {
		a, b = b, a%b
	}
	s.common = a
}

// merged is how many tokens more or less of a prompt may be shared, because its last ones are merged with what follows.
const merged = 2

// can returns the lengths that a block can have, ascending: what divides all that was cached, and is longer than the difference of what
// was not.
func (s *steps) can() []int {
	var list []int
	for d := 1; d*d <= s.common; d++ {
		if s.common%d != 0 {
			continue
		}
		for _, n := range []int{d, s.common / d} {
			if n > s.high-s.low-merged && !slices.Contains(list, n) {
				list = append(list, n)
			}
		}
	}
	slices.Sort(list)
	return list
}

// longer asks a prompt of four times the length twice, where a server that does not say how long its blocks are reused nothing of the
// first one: blocks may be longer than that, and hosted services reuse nothing below some length.
func (x *exam) longer(ctx context.Context, name string, n int) bool {
	const times = 4
	if x.facts.block > 0 || n == 0 || x.facts.window > 0 && times*n > x.facts.window/2 || times*n > MaxProbeTokens {
		return false
	}
	text := probeText(x.cfg.Nonce(), times*len(x.text))
	first := x.ask(ctx, text, nil)
	if first.err != nil {
		return false
	}
	second := x.ask(ctx, text, nil)
	if second.err != nil || second.usage.CachedTokens <= second.usage.PromptTokens/2 || first.usage.CachedTokens > first.usage.PromptTokens/2 {
		return false
	}
	x.add(name, OK, fmt.Sprintf("the same prompt again: %d of %d tokens cached; of one of %d tokens nothing", second.usage.CachedTokens,
		second.usage.PromptTokens, n), "")
	x.text, x.first, x.second = text, first, second
	x.sameCount = false // of another text
	return true
}
