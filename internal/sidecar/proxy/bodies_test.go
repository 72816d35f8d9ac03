package proxy_test

import (
	"fmt"
	"slices"
	"strings"
)

// talking is a client in the middle of a conversation. Its next body has all items of the last one and some more, but for now and then.
type talking struct {
	dice
	*pieces
	path    string
	headers []string
	style   style
	marks   bool // cache marks, which move to the last item
	odd     int  // 0: bodies are what they should be

	retrieves bool // has other documents in the system text now and then

	model   string
	system  []string // texts
	about   style    // of the system text
	groups  [][]entry
	results []string // of tools so far
	shown   []string // documents so far
	calls   int
	extra   object
	last    string
}

// entry is one item of a body, as it was written first.
type entry struct {
	style style
	value object
}

func newTalking(d dice, p *pieces, path string) *talking {
	t := &talking{
		dice: d, pieces: p, path: path, style: styleOf(d), about: styleOf(d), model: pick(d, []string{"m", "m", "n"}), marks: d.in(3),
	}
	mode := ""
	if d.in(3) {
		mode = pick(d, []string{"auto", "XML_Tag", "numbered", "json_results", "separator", "separator", "markdown_header", "other"})
		t.headers = append(t.headers, "X-ContextPilot-Mode", mode)
		if mode == "separator" && d.in(2) {
			t.headers = append(t.headers, "X-ContextPilot-Separator", "===")
		}
		if mode == "XML_Tag" {
			t.headers = append(t.headers, "X-ContextPilot-Tag", pick(d, []string{"item", "Passage", "doc"}))
		}
	}
	if d.in(8) {
		t.headers = append(t.headers, "X-ContextPilot-Scope", pick(d, []string{"system", "tool_results", "all"}))
	}
	if d.in(40) {
		t.headers = append(t.headers, "X-ContextPilot-Enabled", "false")
	}
	if d.in(4) {
		t.headers = append(t.headers, "X-ContextPilot-Session", fmt.Sprint("session ", d.n(4)))
	}
	if d.in(40) {
		t.odd = d.between(1, 4)
	}
	switch d.n(5) {
	case 0:
	case 1, 2:
		t.system = []string{"Be brief.\n" + strings.Join(pick(d, p.files), "\n")}
	default:
		t.retrieves = !d.in(3)
		t.retrieve()
	}
	if d.in(2) {
		t.extra = append(
			t.extra, member{"temperature", 0.5}, member{"x_unknown", object{{"messages", []any{"no", nil}}, {"e", written("1.0E+2")}}},
		)
	}
	if d.in(3) {
		t.extra = append(
			t.extra, member{"tools", []any{object{{"type", "function"}, {"function", object{{"name", "read"}, {"parameters", object{}}}}}}},
		)
	}
	t.groups = [][]entry{{t.user()}}
	return t
}

// retrieve puts documents into the system text. They are few and have few beginnings, so that fronts have much in common.
func (t *talking) retrieve() {
	docs := some(t.dice, t.docs[:6], t.between(2, 5))
	t.shown = append(t.shown, docs...)
	text := forms["xml_tag"][0](t.dice, docs)
	switch t.n(6) {
	case 0:
		text = each(docs, func(i int, doc string) string { return fmt.Sprintf("[%d] %s\n", i+1, doc) })
	case 1:
		text = t.written(docs)
	}
	t.system = []string{pick(t.dice, []string{"", "Answer from these.\n"}) + text}
	switch t.n(6) {
	case 0:
		t.system = append(t.system, words(t.dice, 5))
	case 1:
		t.system = append(t.system, forms["xml_tag"][0](t.dice, some(t.dice, t.docs[:6], 3)))
	}
}

// written writes documents in one of the forms that the mode knows, or now and then in another.
func (t *talking) written(docs []string) string {
	kind := pick(t.dice, usual)
	if len(t.headers) > 1 && t.headers[0] == "X-ContextPilot-Mode" && !t.in(4) {
		if f := strings.ToLower(t.headers[1]); forms[f] != nil {
			kind = f
		}
	}
	return pick(t.dice, forms[kind])(t.dice, docs)
}

// next returns the next body.
func (t *talking) next() string {
	switch n := t.n(12); {
	case t.last == "":
	case n == 0:
		return t.last // tried again
	case n == 1 && len(t.groups) > 1: // another answer
		t.groups = append(t.groups[:len(t.groups)-1:len(t.groups)-1], t.turn())
	case n == 2 && len(t.groups) > 3: // history is cut, or the first message edited
		first := t.groups[:1]
		if t.in(2) {
			first = [][]entry{{t.user()}}
		}
		t.groups = append(slices.Clone(first), t.groups[2:]...)
	default:
		t.groups = append(t.groups, t.turn())
	}
	if t.retrieves && t.in(2) {
		t.retrieve()
	}
	t.last = t.body()
	return t.last
}

// turn is what an agent sends back: an answer and a question, or calls and their results.
func (t *talking) turn() []entry {
	if t.in(4) {
		return []entry{t.says(pick(t.dice, []string{words(t.dice, 9), strings.Join(pick(t.dice, t.files), "\n")})), t.user()}
	}
	n := 1
	if t.in(3) {
		n = t.between(2, 4)
	}
	ids, tools, results := make([]string, n), make([]string, n), make([]string, n)
	for i := range n {
		t.calls++
		ids[i] = fmt.Sprint(pick(t.dice, []string{"c", "call_", "toolu-", "odd (id) "}), t.calls)
		tools[i] = pick(t.dice, []string{"read", "read", "web.search", "user message", "[x]"})
		results[i] = t.result()
		t.results = append(t.results, results[i])
	}
	if t.in(8) { // a result that was sent twice
		ids, tools, results = append(ids, ids[0]), append(tools, tools[0]), append(results, results[0])
	}
	return t.answered(ids, tools, results)
}

// result is what a tool returns.
func (t *talking) result() string {
	switch n := t.n(20); {
	case n < 9:
		docs := some(t.dice, t.docs, t.between(1, 5))
		if t.in(2) {
			docs = some(t.dice, t.docs[:6], t.between(2, 5))
		}
		for i := range docs {
			if len(t.shown) > 0 && t.in(2) {
				docs[i] = pick(t.dice, t.shown)
			}
		}
		if t.in(4) && len(t.shown) > 1 {
			docs = some(t.dice, t.shown, t.between(2, 3))
		}
		t.shown = append(t.shown, docs...)
		return t.written(docs)
	case n < 12 && len(t.results) > 0:
		return pick(t.dice, t.results)
	case n < 16:
		return listingOf(t.dice, pick(t.dice, t.files))
	case n < 17:
		return pick(t.dice, t.docs)
	case n < 18:
		return words(t.dice, 3) + pick(t.dice, hostile) + pick(t.dice, hostile)
	case n < 19:
		return outside(t.dice, pick(t.dice, t.docs))
	}
	return pick(t.dice, []string{"", "ok", "{}", " \n ", `{"results":[]}`})
}

// question is what a user writes.
func (t *talking) question() string {
	switch t.n(8) {
	case 0:
		return "Look:\n" + strings.Join(pick(t.dice, t.files), "\n")
	case 1:
		return forms["own"][0](t.dice, some(t.dice, t.docs, 2)) + words(t.dice, 5) + "?"
	case 2:
		return pick(t.dice, hostile)
	}
	return words(t.dice, t.between(1, 12)) + "?"
}
