package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// arm is one side of the comparison: a pilot, an engine, and the conversations so far.
type arm struct {
	config Config
	name   string
	pilot  *contextpilot.Pilot
	engine engines.Engine
	head   engines.Message
	talks  map[string][]engines.Message     // by user, without the head
	ends   map[string]contextpilot.Position // of the talks
}

func newArm(c Config, name string, pilot contextpilot.Config) (*arm, error) {
	a := &arm{config: c, name: name, talks: map[string][]engines.Message{}, ends: map[string]contextpilot.Position{}}
	a.head = engines.Message{Role: engines.System, Content: c.System}
	if c.Tag != "" {
		a.head.Content = fmt.Sprintf("Run %s, %s. %s", c.Tag, name, c.System)
	}
	var err error
	if a.pilot, err = contextpilot.New(pilot); err != nil {
		return nil, err
	}
	a.engine, err = c.NewEngine()
	return a, err
}

func (a *arm) run(ctx context.Context, questions []retrieved) ([]Sent, error) {
	cancel := a.engine.Subscribe(a.pilot.Sink(contextpilot.Scope{}))
	defer cancel()
	var out []Sent
	for _, q := range questions {
		if a.config.Progress != nil {
			a.config.Progress(a.name, q.ID())
		}
		s, err := a.ask(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("request %s: %w", q.ID(), err)
		}
		out = append(out, s)
	}
	return out, nil
}

// ask plans and sends one turn, with the whole conversation in front of it.
func (a *arm) ask(ctx context.Context, q retrieved) (Sent, error) {
	talk := a.talks[q.User]
	plan := a.pilot.Plan(contextpilot.Request{
		ID: a.requestID(q.Turn), Session: q.User, Query: q.Question, Blocks: q.blocks,
		Prior: texts(talk), Behind: a.ends[q.User], HeadTokens: a.config.Tokenizer.Count(a.head.Content),
	})
	if plan.Fault != nil {
		return Sent{}, fmt.Errorf("plan: %w", plan.Fault)
	}
	prompt := plan.Prompt(q.Question)
	talk = append(slices.Clip(talk), engines.Message{Role: engines.User, Content: prompt})
	if err := complete(&plan, talk); err != nil {
		return Sent{}, err
	}
	request := engines.Request{
		ID: plan.RequestID, Messages: append([]engines.Message{a.head}, talk...),
		MaxTokens: a.config.MaxTokens, Temperature: a.config.Temperature,
	}
	if a.config.OneSentence {
		stop, err := json.Marshal(sentenceEnds())
		if err != nil {
			return Sent{}, err
		}
		request.Extra = map[string]json.RawMessage{"stop": stop}
	}
	answer, err := a.engine.Generate(ctx, request, nil)
	if err != nil {
		if !errors.Is(err, engines.ErrInterrupted) {
			a.pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: plan.RequestID})
		}
		return Sent{}, err
	}
	if a.config.OneSentence {
		answer.Text = firstSentence(answer.Text)
	}
	s := a.sent(&plan, prompt, a.talks[q.User], q)
	s.Prompt, s.Cached, s.CachedKnown = answer.Usage.PromptTokens, answer.Usage.CachedTokens, answer.Usage.CachedKnown
	s.TTFT, s.Answer = answer.TTFT, answer.Text
	a.talks[q.User] = append(talk, engines.Message{Role: engines.Assistant, Content: answer.Text})
	a.ends[q.User] = plan.End.Answered(answer.Usage.OutputTokens)
	return s, nil
}

// requestID is the same on both sides unless they run on one engine.
func (a *arm) requestID(t Turn) string {
	if a.config.Tag == "" {
		return t.ID()
	}
	return a.config.Tag + "-" + a.name + "-" + t.ID()
}

// sent notes how the plan was sent, in the parts that the picture shows.
func (a *arm) sent(plan *contextpilot.Plan, prompt string, before []engines.Message, q retrieved) Sent {
	count := a.config.Tokenizer.Count
	s := Sent{Parts: []Part{{Kind: SystemPart, Tokens: count(a.head.Content)}}}
	if len(before) > 0 {
		n := 0
		for _, t := range texts(before) {
			n += count(t)
		}
		s.Parts = append(s.Parts, Part{Kind: HistoryPart, Tokens: n})
	}
	for i, it := range plan.Items {
		id := plan.Block(it.Index).ID
		p := Part{Kind: BlockPart, Block: id, Tokens: count(plan.RenderItem(i))}
		if it.Ref == nil {
			s.Full = append(s.Full, id)
		} else {
			p.Kind = RefPart
			s.Refs = append(s.Refs, id)
		}
		s.Parts = append(s.Parts, p)
	}
	for _, l := range plan.LeftOut {
		s.LeftOut = append(s.LeftOut, plan.Block(l.Index).ID)
	}
	if plan.Echo != nil {
		s.Parts = append(s.Parts, Part{Kind: NotePart, Tokens: plan.Echo.Tokens})
	}
	if hint := plan.Hint; hint != "" {
		s.Parts = append(s.Parts, Part{Kind: NotePart, Tokens: count(hint)})
	}
	s.Parts = append(s.Parts, Part{Kind: QuestionPart, Tokens: count(q.Question)})
	s.Reordered = plan.Reordered()
	s.Text = prompt
	return s
}

// complete checks that the model can see every retrieved block: documents, references and left-outs make up the
// retrieved set, and the text of each block stands in the messages that are sent.
func complete(plan *contextpilot.Plan, messages []engines.Message) error {
	seen := make([]int, plan.Len())
	for _, it := range plan.Items {
		seen[it.Index]++
	}
	for _, l := range plan.LeftOut {
		seen[l.Index]++
	}
	for i, n := range seen {
		b := plan.Block(i)
		if n != 1 {
			return fmt.Errorf("block %s is %d times in documents, references and left-outs, want once", b.ID, n)
		}
		if !slices.ContainsFunc(messages, func(m engines.Message) bool { return strings.Contains(m.Content, b.Text) }) {
			return fmt.Errorf("block %s is in the plan, but its text is not in the messages", b.ID)
		}
	}
	return nil
}

func texts(messages []engines.Message) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = m.Content
	}
	return out
}
