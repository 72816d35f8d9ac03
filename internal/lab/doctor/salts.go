package doctor

import (
	"context"
	"encoding/json"
	"fmt"
)

// salts checks that prompts share what is cached with those of the same salt only. The probe is in the cache without a salt; it is
// asked with one, again with the same, and with another one.
func (x *exam) salts(ctx context.Context, measured bool) {
	const name = "salts"
	switch {
	case x.kind == LlamaCPP:
		x.add(name, NotKnown, "llama.cpp has none: all who ask it share what is cached", "")
		return
	case x.facts.salt == "":
		x.add(name, NotKnown, "only those of vLLM and SGLang are known", "")
		return
	case x.cfg.NoProbe:
		x.add(name, NotKnown, "not asked: no probes", "")
		return
	case !measured:
		x.add(name, NotKnown, "not measured: without salts nothing was seen to be reused", "")
		return
	case !x.second.usage.CachedKnown:
		x.add(name, NotKnown, "answers do not report what was cached", "")
		return
	}
	one, two := x.cfg.Nonce(), x.cfg.Nonce()
	list := []struct {
		salt, what string
		reused     bool
	}{
		{one, "with a salt, after it was asked without", false},
		{one, "with the same salt again", true},
		{two, "with another salt", false},
	}
	for _, l := range list {
		value, _ := json.Marshal("doctor-" + l.salt) // a string always encodes
		a := x.ask(ctx, x.text, map[string]json.RawMessage{x.facts.salt: value})
		if a.err != nil {
			x.add(name, NotKnown, fmt.Sprintf("a prompt with %s is not answered: %s", x.facts.salt, short(a.err)), "")
			return
		}
		n, cached := a.usage.PromptTokens, a.usage.CachedTokens
		saw := fmt.Sprintf("the same prompt %s: %d of %d tokens cached", l.what, cached, n)
		switch reused := cached > n/2; {
		case l.reused == reused && (reused || cached == 0):
		case l.reused:
			x.wrongSalt(name, saw, "let "+x.facts.salt+" through to the engine as it is: something between changes it")
			return
		default:
			x.wrongSalt(name, saw, "let "+x.facts.salt+" through to the engine: tenants can measure what others have asked")
			return
		}
	}
	x.add(name, OK, x.facts.salt+": the same salt finds the prompt again, another one and none do not", "")
}

// wrongSalt is a problem only where the server is known to have salts.
func (x *exam) wrongSalt(name, saw, do string) {
	if !x.facts.hasSalt {
		x.add(name, NotKnown, saw+"; whether this server has salts is not known", "")
		return
	}
	x.add(name, Problem, saw, do)
}
