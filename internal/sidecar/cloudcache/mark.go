package cloudcache

import (
	"encoding/json"
	"slices"
)

// maxMarks is how many breakpoints a request may carry, wherever they stand.
const maxMarks = 4

// Mark asks for the prompt to be cached, in the provider's way, and returns the body with that spliced in: every other
// byte stays. A body that is not understood, that says a thing twice, or that was sent to another path comes back as it
// is, and so does one that is already marked: Mark may be called twice, and a client that sets any breakpoint itself
// decides about all of them, as each of ours would cost it money it has not asked to spend. The body given is not
// changed. The same body is always marked alike, whatever was sent before.
//
// An Anthropic prompt gets a breakpoint at the end of
//
//  1. the system text, which other conversations begin with, too;
//  2. the last user message, if the conversation goes on: the next turn reads it;
//  3. the user message before it, where the last request ended: it is found again even behind a turn of more blocks
//     than the provider looks back;
//  4. tool results of 1,024 and more characters, the oldest first, which change least;
//
// until there are [maxMarks]. A conversation goes on if it has tools, tool results or an earlier answer. A single
// question is often the only one, and writing what is never read costs a quarter more than not caching (as much again
// with Extended), so that only its system text is marked.
func (p *Provider) Mark(path string, body []byte) []byte {
	if !p.serves(path) || !json.Valid(body) { // gjson's own check overflows the stack on deeply nested text
		return body
	}
	if p.protocol == openAI {
		return p.ask(body)
	}
	prompt, ok := readMessages(body)
	if !ok || prompt.marked {
		return body
	}
	places := prompt.places()
	if len(places) == 0 {
		return body
	}
	control := `{"type":"ephemeral"}`
	if p.extended {
		control = `{"type":"ephemeral","ttl":"1h"}`
	}
	out := make([]byte, 0, len(body)+len(places)*(len(control)+48))
	at := 0
	add := func(upTo int, text string) {
		out = append(out, body[at:upTo]...)
		out = append(out, text...)
		at = upTo
	}
	for _, i := range places {
		switch b := &prompt.blocks[i]; {
		case b.bare:
			add(b.from, bareBegin)
			add(b.to, `,"cache_control":`+control+`}]`)
		case b.control.to > 0: // it is null
			add(b.control.from, control)
			at = b.control.to
		default:
			add(b.end, `,"cache_control":`+control)
		}
	}
	return append(out, body[at:]...)
}

// bareBegin makes a text block of a string.
const bareBegin = `[{"type":"text","text":`

// places returns the blocks to be marked, in the order of the body: messages may come before the system text.
func (p *prompt) places() []int {
	system, last, before := -1, -1, -1
	for i, b := range p.blocks {
		switch {
		case !b.fits:
		case b.message == inSystem:
			system = i
		case b.role == "user":
			if last >= 0 && p.blocks[last].message != b.message {
				before = last
			}
			last = i
		}
	}
	var places []int
	take := func(i int) {
		if i >= 0 && len(places) < maxMarks && !slices.Contains(places, i) {
			places = append(places, i)
		}
	}
	take(system)
	if p.goesOn {
		take(last)
		take(before)
		for i, b := range p.blocks {
			if b.long {
				take(i)
			}
		}
	}
	slices.SortFunc(places, func(a, b int) int { return p.blocks[a].from - p.blocks[b].from })
	return places
}

// ask adds what an OpenAI request can say about its caching, unless the client has.
func (p *Provider) ask(body []byte) []byte {
	if !p.extended {
		return body
	}
	prompt, ok := readOpenAI(body)
	if !ok || prompt.root.get("prompt_cache_retention").Exists() {
		return body
	}
	return slices.Insert(slices.Clone(body), prompt.root.end, []byte(`,"prompt_cache_retention":"24h"`)...)
}
