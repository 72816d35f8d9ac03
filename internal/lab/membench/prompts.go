package membench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
	"github.com/ragpilot/ragpilot/memory"
)

// The arms: what stands in a prompt beside the conversation that it belongs to.
const (
	ArmNone  = "no memory"     // nothing
	ArmWhole = "whole history" // all that was ever said, in its order
	ArmTopK  = "top-k"         // the k memories found, best first, in front of the question
	ArmOurs  = "ours"          // memory.Wrap with a pilot, no option set
)

var arms = []string{ArmNone, ArmWhole, ArmTopK, ArmOurs}

// PromptOptions say how [Prompts] measures.
type PromptOptions struct {
	Embedder embed.Embedder
	Name     string // of the embedder
	K        int    // memories in a prompt; 0: [memory.DefaultK]
	// Cache is the size in tokens of the smaller one of the two caches; 0: [DefaultCache].
	Cache int
	// Model answers Answers of the turns that ask for a fact; nil: no answers are measured.
	Model   Model
	Answers int
	// Progress is called with each arm before it runs, and nil is allowed.
	Progress func(arm string)
}

// DefaultCache is the size in tokens of the smaller one of the two caches: the whole history of one generated user fits, not those of all.
const DefaultCache = 8192

// Model is a language model with a limit to its prompts.
type Model interface {
	engines.Engine
	Count(text string) int
	Context() int
}

// Prompted is what the prompts of the chat cost and hold, with one embedder.
type Prompted struct {
	Embedder string `json:"embedder"`
	K        int    `json:"k"`
	Cache    int    `json:"cache_tokens"`
	Model    string `json:"model,omitempty"`
	Arms     []Arm  `json:"arms"`
}

// Arm is one kind of prompt. Tokens are per turn, on average.
type Arm struct {
	Name   string  `json:"name"`
	Turns  int     `json:"turns"`
	Prompt float64 `json:"prompt_tokens"`
	// Computed are the prompt tokens that are not read from the prefix cache: one without a limit, and one of Prompted.Cache tokens.
	Computed      float64 `json:"computed_tokens"`
	ComputedSmall float64 `json:"computed_tokens_small_cache"`
	// Asking are the turns that ask for a fact, and Held the share of the needed texts that stood in their prompts.
	Asking int     `json:"asking"`
	Held   float64 `json:"held"`
	// Answered are the turns that a model has answered, Right the share of them whose answer says the value, word by word.
	// A prompt that is too long for the model counts as not right, and in TooLong.
	Answered int     `json:"answered,omitempty"`
	Right    float64 `json:"right,omitempty"`
	TooLong  int     `json:"too_long,omitempty"`
}

// Prompts runs the chat of all users in the four arms, conversation by conversation, the users in turn, and counts with an exact
// simulator of a prefix cache. Answers in the history are those of the data, so that all arms have the same conversations.
func Prompts(ctx context.Context, data *Data, opts PromptOptions) (Prompted, error) {
	if opts.K < 1 {
		opts.K = memory.DefaultK
	}
	if opts.Cache < 1 {
		opts.Cache = DefaultCache
	}
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	opts.Embedder = embed.Cached(opts.Embedder, 1<<16) // arms store and ask the same texts
	out := Prompted{Embedder: opts.Name, K: opts.K, Cache: opts.Cache}
	if opts.Model != nil && opts.Answers > 0 {
		out.Model = opts.Model.Name()
	}
	for _, name := range arms {
		opts.Progress(name)
		arm, err := measureArm(ctx, data, name, opts)
		if err != nil {
			return Prompted{}, fmt.Errorf("%s: %w", name, err)
		}
		out.Arms = append(out.Arms, arm)
	}
	return out, nil
}

// measureArm runs an arm with either cache.
func measureArm(ctx context.Context, data *Data, name string, opts PromptOptions) (Arm, error) {
	large, err := runArm(ctx, data, name, 0, opts)
	if err != nil {
		return Arm{}, err
	}
	small, err := runArm(ctx, data, name, opts.Cache, opts)
	if err != nil {
		return Arm{}, err
	}
	n := float64(max(large.turns, 1))
	arm := Arm{
		Name: name, Turns: large.turns, Prompt: float64(large.prompt) / n, Computed: float64(large.computed) / n,
		ComputedSmall: float64(small.computed) / n, Asking: len(large.asking),
	}
	for _, a := range large.asking {
		arm.Held += a.held
	}
	arm.Held /= float64(max(len(large.asking), 1))
	if opts.Model != nil && opts.Answers > 0 {
		err = arm.answer(ctx, opts.Model, spread(large.asking, opts.Answers))
	}
	return arm, err
}

// spread returns n of all, at equal distances.
func spread(all []asking, n int) []asking {
	if n >= len(all) {
		return all
	}
	out := make([]asking, n)
	for i := range out {
		out[i] = all[i*len(all)/n]
	}
	return out
}

// answer has the model answer.
func (a *Arm) answer(ctx context.Context, model Model, turns []asking) error {
	const longest = 48 // tokens of an answer
	cold := 0.0
	for _, t := range turns {
		a.Answered++
		if model.Count(t.prompt)+longest+64 > model.Context() { // 64: the chat's template
			a.TooLong++
			continue
		}
		response, err := model.Generate(ctx, engines.Request{
			Messages: []engines.Message{{Role: engines.User, Content: t.prompt}}, MaxTokens: longest, Temperature: &cold,
		}, nil)
		if err != nil {
			return err
		}
		if eval.MatchText(response.Text, &eval.Row{Answers: []string{t.value}}).Contains {
			a.Right++
		}
	}
	a.Right /= float64(max(a.Answered, 1))
	return nil
}

// asking is a turn that asked for a fact.
type asking struct {
	prompt, value string
	held          float64 // share of the needed texts in the prompt
}

// armRun is one arm on its way through the chats.
type armRun struct {
	name     string
	k        int
	store    *memory.Local
	engine   *meter
	pilot    *contextpilot.Pilot
	before   map[string]*conversation // by user: what was said before the conversation of now
	turns    int
	prompt   int
	computed int
	asking   []asking
}

func runArm(ctx context.Context, data *Data, name string, capacity int, opts PromptOptions) (_ *armRun, err error) {
	pilot, err := contextpilot.New(contextpilot.Config{Tokenizer: tokenizer{}})
	if err != nil {
		return nil, err
	}
	store, err := memory.New(memory.NewInMemory(), memory.Config{Embedder: opts.Embedder})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	r := &armRun{name: name, k: opts.K, store: store, pilot: pilot, engine: newMeter(capacity), before: map[string]*conversation{}}
	cancel := r.engine.Subscribe(pilot.Sink(contextpilot.Scope{}))
	defer cancel()
	for i := range data.Cases {
		if err := r.prepare(ctx, &data.Cases[i]); err != nil {
			return nil, err
		}
	}
	for session := 0; ; session++ {
		talked := false
		for i := range data.Cases {
			c := &data.Cases[i]
			turns := c.session(session)
			talked = talked || len(turns) > 0
			if err := r.converse(ctx, c.User, session, turns); err != nil {
				return nil, err
			}
		}
		if !talked {
			return r, nil
		}
	}
}

// session returns the turns of one conversation.
func (c *Case) session(n int) []Turn {
	var turns []Turn
	for _, t := range c.Turns {
		if t.Session == n {
			turns = append(turns, t)
		}
	}
	return turns
}

// prepare has the arm know what a user said before the chat.
func (r *armRun) prepare(ctx context.Context, c *Case) error {
	said := slices.Clone(c.Statements)
	for _, text := range c.Updates {
		said = append(said, Said{Text: text})
	}
	r.before[c.User] = newConversation(said, c.Deleted)
	if r.name != ArmTopK && r.name != ArmOurs {
		return nil
	}
	for _, s := range said {
		if err := say(ctx, r.store, c.User, s); err != nil {
			return err
		}
	}
	return forget(ctx, r.store, c)
}

// converse runs one conversation.
func (r *armRun) converse(ctx context.Context, user string, session int, turns []Turn) error {
	if len(turns) == 0 {
		return nil
	}
	before := &conversation{}
	if r.name == ArmWhole {
		before = r.before[user] // and it goes on
	}
	side := r.newSide(user, session, before)
	for i, turn := range turns {
		r.engine.answer = turn.Answer
		if err := side.turn(ctx, turn); err != nil {
			return fmt.Errorf("%s, conversation %d, turn %d: %w", user, session, i, err)
		}
		r.turns++
		r.prompt += r.engine.usage.PromptTokens
		r.computed += r.engine.usage.PromptTokens - r.engine.usage.CachedTokens
		if len(turn.Needs) == 0 {
			continue
		}
		a := asking{prompt: r.engine.prompt, value: turn.Value}
		for _, text := range turn.Needs {
			if strings.Contains(a.prompt, text) {
				a.held++
			}
		}
		a.held /= float64(len(turn.Needs))
		r.asking = append(r.asking, a)
	}
	return nil
}

// meter is a simulator that gives the answer that was set, and keeps the last prompt and what it cost.
type meter struct {
	*sim.Engine
	answer string
	prompt string
	usage  engines.Usage
}

func newMeter(capacity int) *meter {
	m := &meter{}
	m.Engine = sim.New(sim.Options{CapacityTokens: capacity, Reply: func(engines.Request) string { return m.answer }})
	return m
}

// Generate keeps what [sim.Engine.Generate] is given and reports.
func (m *meter) Generate(ctx context.Context, req engines.Request, onText func(string) error) (engines.Response, error) {
	response, err := m.Engine.Generate(ctx, req, onText)
	m.usage, m.prompt = response.Usage, ""
	for _, message := range req.Messages {
		m.prompt += message.Content
	}
	return response, err
}

// tokenizer counts as the simulator does.
type tokenizer struct{}

func (tokenizer) Count(text string) int { return tokens.Count(text) }
