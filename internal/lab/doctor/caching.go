package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/engines"
)

// caching measures whether prompts are reused, whole and in their beginning, and says from which length on.
func (x *exam) caching(ctx context.Context) {
	measured := x.repeated(ctx)
	if measured {
		x.measure(ctx)
		x.shared(ctx)
	}
	x.salts(ctx, measured)
	x.blocks()
	x.prefix(ctx)
	x.metrics(ctx)
}

const switchOn = "switch prefix caching on: vLLM without --no-enable-prefix-caching, SGLang without --disable-radix-cache, llama.cpp " +
	"without --no-cache-prompt"

// notReused is what to do where nothing is reused.
func (x *exam) notReused() string {
	if !x.facts.cacheOn {
		return switchOn
	}
	return "the server says that it is on: look for what lies between and puts the time or another text in front of each prompt, or sends " +
		"another cache_salt with each request; or the cache is too small"
}

// repeated looks at the answer to the prompt that was sent twice. It returns whether prompts are reused.
func (x *exam) repeated(ctx context.Context) bool {
	const name = "prefix caching"
	a := &x.second
	n, cached := a.usage.PromptTokens, a.usage.CachedTokens
	switch {
	case x.cfg.NoProbe && x.facts.cacheOff:
		x.add(name, Problem, "the server says that it is off", switchOn)
	case x.cfg.NoProbe:
		x.add(name, NotKnown, "not measured: no probes", "")
	case x.first.err != nil || a.err != nil || !a.counted():
		x.add(name, NotKnown, "not measured: no answers with usage", "")
	case x.moving:
		x.add(name, NotKnown, "the chat template makes another prompt of the same text each time", "")
	case !a.usage.CachedKnown:
		return x.byMetrics(ctx, name, n)
	case x.first.usage.CachedTokens > x.first.usage.PromptTokens/2:
		x.add(name, Warning,
			fmt.Sprintf("%d of %d tokens of a new prompt are said to be cached: this count means something else", x.first.usage.CachedTokens,
				x.first.usage.PromptTokens), "give the address of the engine itself")
	case cached >= n-2*max(x.facts.block, 1) && cached > 0 || cached > n/2:
		x.add(name, OK, fmt.Sprintf("the same prompt again: %d of %d tokens cached", cached, n), "")
		return true
	case x.facts.cacheOff:
		x.add(name, Problem, "the server says that it is off, and the same prompt again found nothing", switchOn)
	default:
		return x.onceMore(ctx, name, n, cached)
	}
	return false
}

// onceMore asks again, twice: several engines behind one address take turns.
func (x *exam) onceMore(ctx context.Context, name string, n, cached int) bool {
	counts := []int{cached}
	for range 2 {
		a := x.ask(ctx, x.text, nil)
		if a.err != nil {
			break
		}
		counts = append(counts, a.usage.CachedTokens)
		if a.usage.CachedTokens > n/2 {
			x.add(name, Problem, fmt.Sprintf("the same prompt again: of %d tokens cached, in turn: %v", n, counts),
				"several engines seem to share this address: give each its own, or let the balancer keep a conversation on one of them")
			return false
		}
	}
	if x.longer(ctx, name, n) {
		return true
	}
	x.add(name, Problem, fmt.Sprintf("the same prompt again: of %d tokens cached, in turn: %v", n, counts), x.notReused())
	return false
}

// byMetrics takes the engine's own counter where answers do not report cached tokens.
func (x *exam) byMetrics(ctx context.Context, name string, n int) bool {
	if x.facts.counters == nil || x.hitsErr != nil {
		x.add(name, NotKnown, "neither answers nor metrics report what was cached", "")
		return false
	}
	after, err := x.facts.counters(ctx)
	grew := after.hits - x.before.hits
	switch {
	case err != nil:
		x.add(name, NotKnown, "metrics: "+short(err), "")
	case after.prompts == x.before.prompts:
		x.add(name, NotKnown, "answers do not report what was cached, and the metrics count no prompts", "")
	case grew > int64(n)/2:
		x.add(name, OK, fmt.Sprintf("the same prompt again: the metrics count %d hits for %d tokens", grew, n), "")
		return true
	default:
		x.add(name, Problem, fmt.Sprintf("the same prompt again: the metrics count %d hits for %d tokens", grew, n), x.notReused())
	}
	return false
}

// longBlock is the length in tokens from which a block is worth a warning: common ones are 16 and 32, and what prompts
// share is often a system prompt of some hundred.
const longBlock = 128

func (x *exam) blocks() {
	const name = "block size"
	b, known := x.block.known()
	floor := x.block.String() + ": a shared prefix that is shorter is never reused"
	switch {
	case x.kind == LlamaCPP:
		x.add(name, OK, "none: reuse is counted in single tokens", "")
	case x.block.most == 0:
		x.add(name, NotKnown, "the server does not report it; often 16: a shared prefix that is shorter is never reused", "")
	case !known:
		x.add(name, NotKnown, floor, "ask with more --probe-tokens")
	case x.cfg.Budget > 0 && b > x.cfg.Budget:
		x.add(name, Problem, floor+fmt.Sprintf(", and the budget is %d", x.cfg.Budget),
			"lower --block-size (vLLM) or --page-size (SGLang); hybrid models have long blocks of their own")
	case b > longBlock:
		x.add(name, Warning, floor,
			"put more in front of what differs, or lower --block-size (vLLM) or --page-size (SGLang); hybrid models have long blocks of their own")
	case x.kind == SGLang && b == 1 && len(x.facts.sources) > 0:
		x.add(name, Warning, "1 token: older releases send an event for each token", "start the server with --page-size 16")
	default:
		x.add(name, OK, floor, "")
	}
}

// metrics says whether /metrics can be read.
func (x *exam) metrics(ctx context.Context) {
	const name = "metrics"
	if x.facts.counters == nil {
		x.add(name, NotKnown, "only those of vLLM, SGLang and llama.cpp are known", "")
		return
	}
	c, err := x.facts.counters(ctx)
	flag := map[Kind]string{
		VLLM:     "let /metrics through: vLLM has it, however it is started",
		SGLang:   "start the server with --enable-metrics",
		LlamaCPP: "start the server with --metrics",
	}[x.kind]
	switch {
	case errors.Is(err, engines.ErrUnreachable):
		x.add(name, NotKnown, short(err), "")
	case err != nil && x.kind == VLLM && x.facts.version == "":
		x.add(name, NotKnown, "/metrics: "+short(err), "this seems to be a gateway: give the address of the engine itself")
	case err != nil:
		x.add(name, Warning, "/metrics: "+short(err), flag)
	case x.hitsErr == nil && x.first.counted() && c.prompts == x.before.prompts:
		do := "see how the server was started: its metrics must count tokens of prompts"
		if x.kind == VLLM {
			do = "start the server without --disable-log-stats"
		}
		x.add(name, Warning, "/metrics counts no prompts: the probes are not in it", do)
	case x.hitsErr == nil && !x.cfg.NoProbe:
		x.add(name, OK, fmt.Sprintf("%d prompt tokens from the cache so far, %d of them since the first probe", c.hits, c.hits-x.before.hits), "")
	default:
		x.add(name, OK, fmt.Sprintf("%d prompt tokens from the cache so far", c.hits), "")
	}
}

// details checks whether answers report what was cached. The second one counts: some releases leave a 0 out.
func (x *exam) details() {
	const name = "token details"
	flag := "start the server with " + x.facts.reportFlag
	if x.facts.reportFlag == "" {
		flag = "give the address of the engine itself, or switch its report of cached tokens on"
	}
	a := &x.second
	switch {
	case x.cfg.NoProbe:
		x.add(name, NotKnown, "not asked: no probes", "")
	case x.first.err != nil || a.err != nil || !a.counted():
		x.add(name, NotKnown, "no answers with usage", "")
	case a.usage.CachedKnown:
		x.add(name, OK, fmt.Sprintf("usage.prompt_tokens_details.cached_tokens: %d", a.usage.CachedTokens), "")
	default:
		x.add(name, Problem, "answers have no usage.prompt_tokens_details.cached_tokens: predictions cannot be checked", flag)
	}
}
