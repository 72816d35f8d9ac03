package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/pause"
)

// mostOff is how far a count may be from the engine's, in hundredths, before budgets and predictions suffer.
const mostOff = 25

// mostTemplate is the number of tokens from which a chat template is worth a warning.
const mostTemplate = 256

// tokenizer compares counts of the probe's text with the engine's. Without the engine's tokenizer its usage stands in, which
// has the chat template in it.
func (x *exam) tokenizer(ctx context.Context) {
	const name = "tokenizer"
	text := x.text
	if text == "" {
		text = probeText("sample", 4*x.cfg.ProbeTokens)
	}
	truth, by := x.first.usage.PromptTokens, "usage"
	if x.facts.count != nil {
		if n, err := x.facts.count(ctx, text); err == nil && n > 0 {
			if truth > 0 && n > truth {
				x.strange = true
				x.add(name, Problem,
					fmt.Sprintf("/tokenize gives %d tokens of a text, usage of the chat with it %d: they are not of one model", n, truth),
					"give the address of the engine itself; behind a gateway the tokenizer is another server's")
				return
			}
			truth, by = n, "/tokenize"
		}
	}
	if truth == 0 {
		x.add(name, NotKnown, "nothing to compare with: no usage and no /tokenize", "")
		return
	}
	said := []string{fmt.Sprintf("%s %d", by, truth)}
	worst := 0
	for _, c := range x.cfg.Counters {
		n := c.Tokenizer.Count(text)
		off := (n - truth) * 100 / truth
		said = append(said, fmt.Sprintf("%s %d (%+d %%)", c.Name, n, off))
		if max(off, -off) > max(worst, -worst) {
			worst = off
		}
	}
	saw := "a text of the probe: " + strings.Join(said, ", ")
	switch {
	case max(worst, -worst) <= mostOff:
		x.add(name, OK, saw, "")
	case by == "/tokenize":
		x.add(name, OK, saw+"; the engine can be asked", "")
	default:
		x.add(name, Warning, saw,
			"configure a tokenizer that fits the model (engines/openai asks the engine): budgets are off by as much")
	}
}

// template measures what the chat template adds, and whether it is the same each time.
func (x *exam) template(ctx context.Context) {
	const name = "chat template"
	used := x.first.usage.PromptTokens
	if x.facts.template == nil || x.text == "" {
		x.add(name, NotKnown, "needs probes, and a server with a tokenizer", "")
		return
	}
	if x.strange {
		x.add(name, NotKnown, "the tokenizer is not the model's", "")
		return
	}
	tokens, err := x.facts.template(ctx, message(x.text))
	if err != nil {
		x.add(name, NotKnown, "tokens of a chat: "+short(err), "")
		return
	}
	n, err := x.facts.count(ctx, x.text)
	if err != nil {
		x.add(name, NotKnown, "tokens of a text: "+short(err), "")
		return
	}
	pause.For(ctx, min(time.Second, x.cfg.Wait/5)) // a clock in the template shows
	again, err := x.facts.template(ctx, message(x.text))
	x.sameCount = err == nil && slices.Equal(tokens, again) && len(tokens) == used
	switch {
	case err == nil && !slices.Equal(tokens, again):
		x.moving = true
		x.add(name, Problem,
			fmt.Sprintf("the same chat has other tokens a second later, from token %d on: nothing behind them is reused", differ(tokens, again)),
			"take the time out of the model's chat template")
	case used > 0 && len(tokens) != used:
		x.otherCount = true
		x.add(name, Problem,
			fmt.Sprintf("the tokenizer gives %d tokens of a chat, its usage %d: what is predicted by tokens does not fit", len(tokens), used),
			"give the address of the engine itself, and ask for the model that it tokenizes for")
	case len(tokens)-n > mostTemplate:
		x.add(name, Warning, fmt.Sprintf("it adds %d tokens to a text of %d", len(tokens)-n, n),
			"reckon with them in budgets; they are reused like any prefix")
	default:
		x.add(name, OK, fmt.Sprintf("it adds %d tokens to a text of %d, the same each time", len(tokens)-n, n), "")
	}
}

// differ is where two sequences part.
func differ(a, b []uint32) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// requestID looks whether an answer has the request's ID.
func (x *exam) requestID() {
	const name = "request ID"
	a := &x.first
	switch {
	case x.kind == LlamaCPP:
		x.add(name, OK, "llama.cpp takes none; ragpilot keeps its own", "")
	case a.err != nil || a.id == "":
		x.add(name, NotKnown, "no answer with an ID", "")
	case strings.Contains(a.id, a.sent):
		x.add(name, OK, fmt.Sprintf("sent %s, answered %s", a.sent, a.id), "")
	case x.facts.takesID:
		x.add(name, Warning, fmt.Sprintf("sent %s, answered %s: evictions that name requests will not be recognised", a.sent, a.id),
			"let X-Request-Id and the body's request_id and rid through to the engine")
	default:
		x.add(name, NotKnown, fmt.Sprintf("sent %s, answered %s", a.sent, a.id), "")
	}
}
