package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
)

// Chat is one conversation that resends its history. It is not safe for concurrent use: a conversation has one turn
// at a time.
type Chat struct {
	cfg     Config
	pilot   *contextpilot.Pilot
	items   []item
	system  int    // tokens of the system prompt
	summary string // "" or whole lines
	summed  int    // tokens of the summary
	last    *Turn  // not answered yet
}

// Turn is a turn that is ready to be sent.
type Turn struct {
	// Plan lays out the question's blocks. Its RequestID goes to the engine; blocks that did not fit are in its LeftOut.
	Plan contextpilot.Plan
	// Messages is the prompt, the system prompt first.
	Messages []Message
	// Tokens is the length of the prompt as counted.
	Tokens int
	// Trim is what was cut before this turn; nil: nothing.
	Trim *Trim
}

// Cut is what leaves a conversation, for a summary.
type Cut struct {
	// Summary is what was made of earlier cuts.
	Summary string
	// Messages are those that leave now, oldest first.
	Messages []Message
}

// Trim describes a cut.
type Trim struct {
	Cut
	// Before and After are the prompt's tokens, the new turn not included. After includes the blocks that had to take the
	// place of references.
	Before, After int
	// Restored are the labels of these blocks.
	Restored []string
	// Forgotten is the number of blocks that the conversation does not show any more.
	Forgotten int
	// SummaryErr is the error of Config.Summarize. The conversation then goes on with the summary that it had.
	SummaryErr error
}

// New returns an empty conversation. Errors wrap [ErrBadConfig], or [ErrTooLong] if the system prompt alone exceeds the
// high mark.
func New(pilot *contextpilot.Pilot, cfg Config) (*Chat, error) {
	if pilot == nil {
		return nil, fmt.Errorf("%w: the pilot is nil", ErrBadConfig)
	}
	cfg, err := cfg.withDefaults(pilot.Tokenizer())
	if err != nil {
		return nil, err
	}
	c := &Chat{cfg: cfg, pilot: pilot}
	if cfg.System != "" {
		c.system = c.count(cfg.System)
	}
	if n := c.size(); n > cfg.High {
		return nil, fmt.Errorf("system prompt of %d tokens: %w of %d", n, ErrTooLong, cfg.High)
	}
	return c, nil
}

// Ask plans the next turn: the blocks retrieved for a question, best first, behind the conversation so far. If the turn
// does not fit below the high mark, the history is cut first. What does not fit then either is left out of the plan, the
// lowest rank first. A turn that was asked and not answered is taken back.
//
// Errors wrap [ErrTooLong] if the question does not fit behind what is never cut, or are those of ctx; the conversation is
// then as it was, but for a turn that had no answer. If it was cut before that showed, Turn.Trim says what has left.
// Summarize is called with ctx.
func (c *Chat) Ask(ctx context.Context, question string, blocks ...contextpilot.Block) (Turn, error) {
	c.Drop()
	if err := ctx.Err(); err != nil {
		return Turn{}, err
	}
	needs := c.count(question) + c.cfg.PerMessage
	least := c.least() + needs
	if min(least, c.size()+needs) > c.cfg.High {
		return Turn{}, fmt.Errorf("question of %d tokens in a prompt of %d: %w of %d", needs, least, ErrTooLong, c.cfg.High)
	}
	var trim *Trim
	blocks = uncounted(blocks)
	it := c.lay(question, blocks)
	if least <= c.cfg.High && c.cuttable(len(c.items)) && c.crowded(&it) {
		c.pilot.TakeBack(it.plan)
		var err error
		if trim, err = c.trim(ctx, len(c.items), needs); err != nil {
			return Turn{}, err
		}
		it = c.lay(question, blocks)
	}
	if n := c.size() + it.tokens; n > c.cfg.High {
		c.pilot.TakeBack(it.plan)
		return Turn{Trim: trim}, fmt.Errorf("prompt of %d tokens: %w of %d", n, ErrTooLong, c.cfg.High)
	}
	c.items = append(c.items, it)
	c.last = &Turn{Plan: *it.plan, Messages: c.Messages(), Tokens: c.size(), Trim: trim}
	return *c.last, nil
}

// lay plans a turn behind the messages as they stand. If the whole has more tokens than its parts, it is planned again
// with less room, until it fits or is the question alone.
func (c *Chat) lay(question string, blocks []contextpilot.Block) item {
	for slack := 0; ; {
		plan := c.plan(question, blocks, slack)
		it := item{Message: Message{Role: User}, plan: &plan, at: plan.End, ending: strings.TrimPrefix(plan.Prompt(question), plan.Context())}
		c.set(&it, it.render(nil))
		over := c.size() + it.tokens - c.cfg.High
		if over <= 0 || len(plan.Items) == 0 {
			return it
		}
		c.pilot.TakeBack(&plan)
		slack += over
	}
}

// plan asks the pilot to lay out a turn in the room that is left, less some slack.
func (c *Chat) plan(question string, blocks []contextpilot.Block, slack int) contextpilot.Plan {
	room := c.cfg.High - c.size() - c.cfg.PerMessage - slack
	if room <= 0 {
		room = -1
	}
	prior, head := make([]string, len(c.items)), c.head()
	for i := range c.items {
		prior[i] = c.text(i, head)
	}
	return c.pilot.Plan(contextpilot.Request{
		Session: c.cfg.Session, Scope: c.cfg.Scope, Query: question, Blocks: blocks, Prior: prior, Behind: end(c.items),
		HeadTokens: c.system, Budget: c.cfg.Blocks, Room: room,
	})
}

// uncounted returns the blocks without the lengths that they came with: those need not be exact.
func uncounted(blocks []contextpilot.Block) []contextpilot.Block {
	blocks = slices.Clone(blocks)
	for i := range blocks {
		blocks[i].Tokens = 0
	}
	return blocks
}

// crowded reports whether a turn, or some of its blocks, found no room that a cut would make: a history below the low mark is not cut
// for blocks.
func (c *Chat) crowded(it *item) bool {
	return c.size()+it.tokens > c.cfg.High || c.size() > c.cfg.Low &&
		slices.ContainsFunc(it.plan.LeftOut, func(l contextpilot.LeftOut) bool { return l.Reason == contextpilot.OverWindow })
}

// Answer adds the assistant's answer to the turn that was asked.
func (c *Chat) Answer(text string) {
	_ = c.Add(Message{Role: Assistant, Text: text}) // an answer has no system role
}

// Add adds messages: answers, tool calls and their results, or those of an earlier conversation. A system message is an
// error that wraps [errors.ErrUnsupported]; nothing is added then.
func (c *Chat) Add(added ...Message) error {
	for _, m := range added {
		if m.Role == System {
			return fmt.Errorf("%w: a system message behind others; Config.System is the system prompt", errors.ErrUnsupported)
		}
	}
	for _, m := range added {
		m.Calls, m.Answers = slices.Clone(m.Calls), slices.Clone(m.Answers)
		it := item{Message: m}
		c.set(&it, m.Text)
		if last := len(c.items) - 1; last >= 0 && c.items[last].plan != nil && m.Role == Assistant {
			it.at = c.items[last].at.Answered(c.count(m.Text) + m.Extra)
		} else {
			it.at = c.behind(end(c.items), &it, m.Text)
		}
		c.items = append(c.items, it)
	}
	if len(added) > 0 {
		c.last = nil
	}
	return nil
}

// Continue returns the prompt for the next step of a turn that is not over, after the results of tool calls were added. If
// it exceeds the high mark, the history is cut, and if that is not enough the turn's own earlier steps. If the rest does
// not fit then either, the error wraps [ErrTooLong]; the cut stays, and the Trim describes it. Other errors are those of ctx.
func (c *Chat) Continue(ctx context.Context) ([]Message, *Trim, error) {
	if c.size() <= c.cfg.High {
		return c.Messages(), nil, nil
	}
	open := lastUser(len(c.items), func(i int) Role { return c.items[i].Role })
	var trim *Trim
	if c.cuttable(open + 1) { // a pinned turn keeps its steps
		var err error
		if trim, err = c.trim(ctx, open, 0); err != nil {
			return nil, nil, err
		}
	}
	if n := c.size(); n > c.cfg.High {
		return nil, trim, fmt.Errorf("prompt of %d tokens: %w of %d", n, ErrTooLong, c.cfg.High)
	}
	return c.Messages(), trim, nil
}

// Drop takes back the turn that was asked last, if it has no answer: its prompt was not sent, or the conversation goes on
// without it.
func (c *Chat) Drop() {
	if c.last == nil {
		return
	}
	c.pilot.TakeBack(&c.last.Plan)
	c.items = c.items[:len(c.items)-1]
	c.last = nil
}

// Messages returns a copy of the prompt as it stands, the system prompt first.
func (c *Chat) Messages() []Message {
	out := messages(c.items)
	if head := c.head(); head < len(out) {
		out[head].Text = c.text(head, head)
	}
	if c.cfg.System != "" {
		out = slices.Insert(out, 0, Message{Role: System, Text: c.cfg.System})
	}
	return out
}

// Tokens returns the length of the prompt as it stands, as counted.
func (c *Chat) Tokens() int { return c.size() }

// Summary returns what stands for the messages that were cut, "" if nothing does.
func (c *Chat) Summary() string { return strings.TrimSpace(c.summary) }

// behind returns the position behind an item with a text that was not planned as it stands there.
func (c *Chat) behind(at contextpilot.Position, it *item, text string) contextpilot.Position {
	if it.plan == nil && it.Role == User { // of an earlier conversation
		return c.pilot.Restore(at, text)
	}
	return c.pilot.Behind(at, it.plan, text)
}

// text returns the text of message i as it is sent: the first one behind the head begins with the summary.
func (c *Chat) text(i, head int) string {
	if i == head {
		return c.summary + c.items[i].Text
	}
	return c.items[i].Text
}

// head returns the index of the first item behind the pinned turns.
func (c *Chat) head() int {
	return headEnd(len(c.items), func(i int) Role { return c.items[i].Role }, c.cfg.Pinned)
}

func (c *Chat) cuttable(open int) bool { return c.head() < open }

// size returns the tokens of the prompt as it stands.
func (c *Chat) size() int {
	n := c.fixed()
	for i := range c.items {
		n += c.items[i].tokens
	}
	return n
}

// least returns the tokens of the prompt if all is cut that can be.
func (c *Chat) least() int {
	n := c.fixed() + c.reserved()
	for i := range c.items[:c.head()] {
		n += c.items[i].tokens
	}
	return n
}

// reserved returns the tokens by which a new summary may be longer than the one there is.
func (c *Chat) reserved() int {
	if c.cfg.Summarize == nil {
		return 0
	}
	return max(c.cfg.SummaryTokens-c.summed, 0)
}

// fixed returns the tokens of system prompt and summary, and of what opens the answer.
func (c *Chat) fixed() int {
	n := c.summed + c.cfg.PerMessage
	if c.cfg.System != "" {
		n += c.system + c.cfg.PerMessage
	}
	return n
}

// set gives an item its text.
func (c *Chat) set(it *item, text string) {
	it.Text = text
	it.tokens = c.count(text) + it.Extra + c.cfg.PerMessage
	it.shows = it.shows[:0:0]
	for r := range markup.Regions(text) {
		it.shows = append(it.shows, block{r.Label, r.Text})
	}
}

func (c *Chat) count(text string) int {
	if text == "" {
		return 0
	}
	return c.pilot.Tokenizer().Count(text)
}
