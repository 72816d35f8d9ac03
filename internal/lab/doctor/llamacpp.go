package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// slots are a llama.cpp server's places for token sequences.
type slots struct {
	n       int
	context int // tokens of each
	visible bool
	metrics bool
	files   func(ctx context.Context) error // tries slot files
}

func lookLlamaCPP(ctx context.Context, server openai.Config, chats *openai.Engine, slotDir string) (facts, error) {
	engine, err := llamacpp.New(llamacpp.Config{Server: server})
	if err != nil {
		return facts{}, err
	}
	info, err := engine.Info(ctx)
	if err != nil {
		return facts{}, err
	}
	files := func(ctx context.Context) error { return llamacpp.ProbeSlotFiles(ctx, server, slotDir, 0) }
	return facts{
		version: info.Build, window: info.ContextSlot, block: 1, capacity: info.Slots * info.ContextSlot,
		slots: &slots{n: info.Slots, context: info.ContextSlot, visible: info.SlotsVisible, metrics: info.Metrics, files: files},
		count: func(ctx context.Context, text string) (int, error) {
			tokens, err := llamaTokens(ctx, chats, map[string]any{"content": text})
			return len(tokens), err
		},
		template: func(ctx context.Context, messages []engines.Message) ([]uint32, error) {
			return llamaTemplate(ctx, chats, map[string]any{"messages": chatOf(messages)})
		},
		prompt: func(ctx context.Context, body []byte) ([]uint32, error) {
			return llamaTemplate(ctx, chats, json.RawMessage(body))
		},
		counters: func(ctx context.Context) (counters, error) {
			m, err := engine.Metrics(ctx)
			return counters{int64(m[llamacpp.PromptTokens]), int64(m[llamacpp.PromptTokensCached])}, err
		},
	}, nil
}

func llamaTokens(ctx context.Context, chats *openai.Engine, question map[string]any) ([]uint32, error) {
	var answer struct {
		Tokens []uint32 `json:"tokens"`
	}
	return answer.Tokens, post(ctx, chats, "/tokenize", question, &answer)
}

// llamaTemplate asks for the chat as the model will read it, and for its tokens.
func llamaTemplate(ctx context.Context, chats *openai.Engine, body any) ([]uint32, error) {
	var chat struct {
		Prompt string `json:"prompt"`
	}
	if err := post(ctx, chats, "/apply-template", body, &chat); err != nil {
		return nil, err
	}
	return llamaTokens(ctx, chats, map[string]any{"content": chat.Prompt, "add_special": true, "parse_special": true})
}

// chatOf are messages as bodies have them.
func chatOf(messages []engines.Message) []map[string]string {
	list := make([]map[string]string, len(messages))
	for i, m := range messages {
		list[i] = map[string]string{"role": string(m.Role), "content": m.Content}
	}
	return list
}

// post sends a question in JSON and reads the answer into to.
func post(ctx context.Context, chats *openai.Engine, path string, question, to any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	answer, err := chats.Do(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, to); err != nil {
		return fmt.Errorf("answer of %s: %w", path, err)
	}
	return nil
}

// slotChecks are those of a llama.cpp server.
func (x *exam) slotChecks(ctx context.Context) {
	s := x.facts.slots
	if s == nil {
		return
	}
	switch {
	case s.n == 1:
		x.add("slots", Warning, "1 slot: conversations overwrite each other's cache",
			"start the server with --parallel N, and N times the context (-c is divided among the slots)")
	case !s.visible:
		x.add("slots", Warning,
			fmt.Sprintf("%d slots of %d tokens, and /slots is off: doubts about what they hold cannot be cleared up", s.n, s.context),
			"start the server with --slots")
	default:
		x.add("slots", OK, fmt.Sprintf("%d slots of %d tokens", s.n, s.context), "")
	}
	if x.first.err != nil || !x.first.usage.CachedKnown {
		x.add("host cache", NotKnown, "no answers that report cached tokens", "")
		x.add("cache reuse", NotKnown, "no answers that report cached tokens", "")
		return
	}
	x.hostCache(ctx, s.n)
	x.cacheReuse(ctx)
}

// slotFiles tries whether the server can keep slots in the folder that the configuration names.
func (x *exam) slotFiles(ctx context.Context) {
	switch {
	case x.cfg.SlotDir == "":
		return
	case x.facts.slots == nil:
		x.add("slot files", NotKnown, "no llama.cpp server that says what it is", "")
		return
	case x.cfg.NoProbe:
		x.add("slot files", NotKnown, "no prompts are sent", "")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, x.cfg.Timeout)
	defer cancel()
	if err := x.facts.slots.files(ctx); err != nil {
		x.add("slot files", Problem, "off: "+short(err),
			"start the server with --slot-save-path "+x.cfg.SlotDir+"; where the model does not allow it, leave slot files off")
		return
	}
	x.add("slot files", OK, "a slot was saved to "+x.cfg.SlotDir+", erased, restored, and its tokens were used", "")
}

// mostSlots bounds the slots that are overwritten to find out whether the server keeps what they held.
const mostSlots = 8

// hostCache overwrites all slots with short prompts and asks for the first probe again.
func (x *exam) hostCache(ctx context.Context, n int) {
	if n > mostSlots {
		x.add("host cache", NotKnown, fmt.Sprintf("%d slots: too many to overwrite for a test", n), "")
		return
	}
	for range n {
		if a := x.ask(ctx, probeText(x.cfg.Nonce(), 200), nil); a.err != nil {
			x.add("host cache", NotKnown, short(a.err), "")
			return
		}
	}
	a := x.ask(ctx, x.text, nil)
	switch {
	case a.err != nil:
		x.add("host cache", NotKnown, short(a.err), "")
	case a.usage.CachedTokens > a.usage.PromptTokens/2:
		x.add("host cache", OK,
			fmt.Sprintf("on: %d of %d tokens came back after all slots were overwritten; predictions are lower bounds", a.usage.CachedTokens,
				a.usage.PromptTokens), "")
	default:
		x.add("host cache", OK,
			fmt.Sprintf("off: %d of %d tokens were left after all slots were overwritten; predictions are exact", a.usage.CachedTokens,
				a.usage.PromptTokens), "")
	}
}

// reuseSize is the length in bytes of the prompt for --cache-reuse N: what is moved has some 400 tokens, and N is 256 where
// it is set by recommendation.
const reuseSize = 2400

// cacheReuse sends a prompt to a slot, and again without some lines behind its first: what is cached of the lines after
// these was moved there.
func (x *exam) cacheReuse(ctx context.Context) {
	pinned := map[string]json.RawMessage{"id_slot": json.RawMessage("0")}
	lines := strings.SplitAfter(probeText(x.cfg.Nonce(), min(reuseSize, max(x.facts.window/2, 1))), "\n")
	before := x.ask(ctx, strings.Join(lines, ""), pinned)
	if before.err != nil {
		x.add("cache reuse", NotKnown, short(before.err), "")
		return
	}
	after := x.ask(ctx, lines[0]+strings.Join(lines[min(5, len(lines)):], ""), pinned)
	cached, of := after.usage.CachedTokens, after.usage.PromptTokens
	switch {
	case after.err != nil:
		x.add("cache reuse", NotKnown, short(after.err), "")
	case cached > of/2:
		x.add("cache reuse", Warning,
			fmt.Sprintf("on: %d of %d tokens of a prompt without some of its first lines were cached, moved: answers are approximations, and "+
				"predictions too low", cached, of), "start the server without --cache-reuse unless this is meant")
	default:
		x.add("cache reuse", OK, fmt.Sprintf("off: %d of %d tokens of a prompt without some of its first lines were cached", cached, of), "")
	}
}
