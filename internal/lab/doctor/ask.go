package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// answerTokens is the length of an answer: what it says does not matter.
const answerTokens = 1

// answer is what came back to a probe.
type answer struct {
	sent, id string // of the request, and as the answer has it
	usage    engines.Usage
	err      error
}

func (a *answer) counted() bool { return a.usage.PromptTokens > 0 }

// ask sends one prompt. It is streamed, as ragpilot sends them, unless streams have shown to bring no usage.
func (x *exam) ask(ctx context.Context, text string, extra map[string]json.RawMessage) answer {
	return x.askAt(ctx, x.chats, text, extra)
}

func (x *exam) askAt(ctx context.Context, chats *openai.Engine, text string, extra map[string]json.RawMessage) answer {
	ctx, cancel := context.WithTimeout(ctx, x.cfg.Timeout)
	defer cancel()
	a := answer{sent: "doctor-" + strings.ToLower(x.cfg.Nonce())}
	if x.plain {
		a.err = x.askPlain(ctx, chats, &a, text, extra)
	} else {
		a.err = x.askStream(ctx, chats, &a, text, extra)
	}
	x.report.Sent.Prompts++
	x.report.Sent.Tokens += cmp.Or(a.usage.PromptTokens, contextpilot.Estimate{}.Count(text))
	x.report.Sent.Answer = answerTokens
	return a
}

func (x *exam) askStream(ctx context.Context, chats *openai.Engine, a *answer, text string, extra map[string]json.RawMessage) error {
	ctx = openai.WithChunks(ctx, func(data []byte) {
		var chunk struct {
			ID string `json:"id"`
		}
		if a.id == "" && json.Unmarshal(data, &chunk) == nil {
			a.id = chunk.ID
		}
	})
	response, err := chats.Generate(ctx, engines.Request{ID: a.sent, Messages: message(text), MaxTokens: answerTokens, Extra: extra}, nil)
	a.usage = response.Usage
	return err
}

func (x *exam) askPlain(ctx context.Context, chats *openai.Engine, a *answer, text string, extra map[string]json.RawMessage) error {
	body := map[string]any{"messages": chatOf(message(text)), "max_tokens": answerTokens, "stream": false}
	for name, value := range maps.All(extra) {
		body[name] = value
	}
	if x.model != "" {
		body["model"] = x.model
	}
	if x.kind == VLLM || x.kind == SGLang {
		body["request_id"], body["rid"] = a.sent, a.sent
	}
	var got struct {
		ID    string `json:"id"`
		Usage struct {
			Prompt  int `json:"prompt_tokens"`
			Details *struct {
				Cached *int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		} `json:"usage"`
	}
	if err := post(ctx, chats, "/v1/chat/completions", body, &got); err != nil {
		return err
	}
	a.id, a.usage.PromptTokens = got.ID, got.Usage.Prompt
	if d := got.Usage.Details; d != nil && d.Cached != nil {
		a.usage.CachedTokens, a.usage.CachedKnown = *d.Cached, true
	}
	return nil
}

// probe sends a prompt that no cache has, and the same again.
func (x *exam) probe(ctx context.Context) {
	x.text = x.sized(ctx)
	x.hitsErr = errors.New("no metrics")
	if x.facts.counters != nil {
		x.before, x.hitsErr = x.facts.counters(ctx)
	}
	x.first = x.ask(ctx, x.text, nil)
	if x.first.err != nil {
		x.add("answers", Problem, "a prompt is not answered: "+short(x.first.err),
			"see the server's log; a model that is not a chat model has no chat template")
		return
	}
	streamed := x.first.counted()
	if !streamed {
		x.plain = true
		x.text = probeText(x.cfg.Nonce(), len(x.text))
		if x.first = x.ask(ctx, x.text, nil); x.first.err != nil {
			x.add("answers", Problem, "a prompt is answered only as a stream: "+short(x.first.err), "see the server's log")
			return
		}
	}
	x.second = x.ask(ctx, x.text, nil)
	if x.second.err != nil {
		x.add("answers", Problem, "the same prompt is not answered again: "+short(x.second.err), "see the server's log")
		return
	}
	x.add("answers", OK, "two prompts were answered", "")
	switch {
	case streamed:
		x.add("streaming usage", OK, "the last chunk of a stream has usage", "")
	case x.first.counted():
		x.add("streaming usage", Problem, "streams have no usage, other answers have",
			"let stream_options.include_usage through to the engine: a gateway between drops it, or the release is too old")
	default:
		x.add("streaming usage", Problem, "answers have no usage, streamed or not",
			"give the address of the engine itself: a gateway between may drop it")
	}
}

// sized is the text of the probe: as long as it should be by the server's tokenizer, if it has one.
func (x *exam) sized(ctx context.Context) string {
	want := max(x.cfg.ProbeTokens, min(4*x.facts.block, MaxProbeTokens))
	if w := x.facts.window; w > 0 {
		want = min(want, w/2)
	}
	nonce, size := x.cfg.Nonce(), 4*want
	if x.facts.count != nil {
		for range 3 {
			text := probeText(nonce, size)
			n, err := x.facts.count(ctx, text)
			if err != nil || n == 0 || n > want*9/10 && n <= want*11/10 {
				break
			}
			size = max(len(text)*want/n, 1)
		}
	} else if w := x.facts.window; w > 0 {
		size = min(size, w*3/4) // a token has a byte at least
	}
	return probeText(nonce, size)
}

// probeText is a text of at least size bytes that no cache has, because it begins with nonce. Its lines differ, so that no
// part of it is like another.
func probeText(nonce string, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s begins a text of ragpilot doctor. It is made up and means nothing.\n", nonce)
	for i := 1; b.Len() < size; i++ {
		fmt.Fprintf(&b, "Note %d: harbour %d has %d boats, of which %d are at sea.\n", i, i*7%101, i*13%89+20, i*3%19)
	}
	return b.String()
}
