package framework

import (
	"context"
	"maps"
	"slices"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/stabilise"
)

// WrapOptions are what the wrappers of other frameworks can be configured with.
type WrapOptions struct {
	// Scope is the engine's cache that the prompts go to. The wrappers of the retriever and of the model have the same.
	Scope contextpilot.Scope
	// Budget bounds the tokens of a request's documents; 0: no bound. Wrappers of models ignore it.
	Budget int
	// NoHold keeps a retriever's plans away from the wrapped models of the pilot. Wrappers of models ignore it.
	NoHold bool
	// NoHint and ToolResults are those of [Options]. Wrappers of retrievers ignore them.
	NoHint, ToolResults bool
	// Stabiliser keeps the beginnings of prompts as they were; nil: none does. Wrappers of retrievers ignore it.
	Stabiliser *stabilise.Stabiliser
}

// NewWrapOptions returns the options that some functions set.
func NewWrapOptions[F ~func(*WrapOptions)](set []F) (o WrapOptions) {
	for _, f := range set {
		f(&o)
	}
	return o
}

// Calls returns the calls of a model with these options.
func (o WrapOptions) Calls(pilot *contextpilot.Pilot) *Calls {
	return NewCalls(pilot, Options{Scope: &o.Scope, NoHint: o.NoHint, ToolResults: o.ToolResults})
}

// Planner plans what a retriever finds. It is safe for concurrent use.
type Planner struct {
	pilot  *contextpilot.Pilot
	offers *Offers
	o      WrapOptions
}

// NewPlanner returns a planner for one retriever.
func NewPlanner(pilot *contextpilot.Pilot, o WrapOptions) *Planner {
	return &Planner{pilot, OffersOf(pilot), o}
}

// Plan lays out the blocks that were found for a query, and offers the plan to the pilot's models. It may change the blocks' IDs.
// The session is left to the model's wrapper, which sees the messages that are sent.
func (p *Planner) Plan(ctx context.Context, query string, blocks []contextpilot.Block) []Laid {
	plan := p.pilot.Plan(contextpilot.Request{
		Scope: p.o.Scope, Query: query, Blocks: Unambiguous(blocks), Budget: p.o.Budget, NoEcho: p.o.NoHold,
	})
	plan.Session = ConversationFrom(ctx)
	if len(plan.Items) > 0 && !p.o.NoHold { // without blocks there is nothing to find it by
		p.offers.Offer(plan)
	}
	return Layout(&plan)
}

// Unambiguous takes away the IDs that stand for more than one text, as they would for the model; such blocks are known by
// their texts. It changes blocks and returns it.
func Unambiguous(blocks []contextpilot.Block) []contextpilot.Block {
	first, twice := make(map[string]string, len(blocks)), map[string]bool{}
	for _, b := range blocks {
		if text, ok := first[b.ID]; ok && text != b.Text {
			twice[b.ID] = true
		}
		first[b.ID] = b.Text
	}
	for i := range blocks {
		if twice[blocks[i].ID] {
			blocks[i].ID = ""
		}
	}
	return blocks
}

// Documents makes documents of what a plan lays out. document gets those that were left out with a document.
func Documents[D any](laid []Laid, document func(l Laid, leftOut []D) D) []D {
	docs := make([]D, len(laid))
	for i, l := range laid {
		docs[i] = document(l, Documents(l.LeftOut, document))
	}
	return docs
}

// Metadata returns a copy of a document's metadata, with what the plan says of it: all keys but [KeyText] and [KeyLeftOut].
func (l *Laid) Metadata(of map[string]any) map[string]any {
	m := maps.Clone(of)
	if m == nil {
		m = map[string]any{}
	}
	m[KeyRank] = l.Index + 1
	for key, value := range map[string]string{KeyBlockID: l.BlockID, KeyLabel: l.Label, KeyReason: l.Reason} {
		if value != "" {
			m[key] = value
		}
	}
	return m
}

// RoleNamed returns the role with a name that most frameworks use; any other name is the assistant's.
func RoleNamed(name string) conversation.Role {
	switch name {
	case "system":
		return conversation.System
	case "user":
		return conversation.User
	case "tool":
		return conversation.Tool
	}
	return conversation.Assistant
}

// Note adds a text to the message and returns it. It is what a wrapper visits the texts of its own messages with.
func (m *Message) Note(text conversation.Text) string {
	m.Texts = append(m.Texts, text)
	return text.Value
}

// Replace returns messages with the texts that are sent in place of the caller's. visit returns a message with what text returns
// for each of its texts, copied if it is another one. The messages given are not changed.
func Replace[M any](messages []M, with []Replacement, visit func(message M, text func(conversation.Text) string) M) []M {
	if len(with) == 0 {
		return messages
	}
	messages = slices.Clone(messages)
	EachMessage(with, func(i int, text func(conversation.Text) string) { messages[i] = visit(messages[i], text) })
	return messages
}
