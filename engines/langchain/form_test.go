package langchain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/langchain"
)

// A prompt of one's own may number the documents and have the hint behind the question.
func TestFormOfThePromptIsKept(t *testing.T) {
	for _, test := range []struct {
		name, format, want string
	}{
		{
			name:   "numbered, without hint",
			format: "1. %s\n2. %s\n3. %s\n4. %s\nWhy?",
			want: "1. <doc d>\nText of d.\n</doc>\n2. <doc c>\nText of c.\n</doc>\n3. <doc b>\nText of b.\n</doc>\n" +
				"Please refer to [a] in the previous conversation.\nWhy?",
		},
		{
			name:   "hint behind the question",
			format: "%s, %s, %s; %s\nWhy?\nPlease read the context in the following priority order: [d] > [a] > [c] > [b] and answer the question.",
			want: "<doc d>\nText of d.\n</doc>, <doc c>\nText of c.\n</doc>, <doc b>\nText of b.\n</doc>\nPlease refer to [a] in the previous conversation.\n" +
				"Why?\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			inner := &recorder{}
			// Behind a history the policy keeps the retriever's order, so the old hint has to go.
			pilot := newPilot(t, contextpilot.Config{NewPolicy: func() contextpilot.Policy { return sortedAtRoot{} }})
			m := langchain.Wrap(pilot, inner)
			_, first := hold(pilot, "s", "a")
			messages := []llms.MessageContent{human(first + "\n\nWhat?")}
			messages = append(messages, ai(generate(in("s"), t, m, messages)))
			plan, _ := hold(pilot, "s", "d", "a", "c", "b")
			var blocks []any
			for i := range plan.Items {
				blocks = append(blocks, strings.TrimSuffix(plan.RenderItem(i), "\n"))
			}
			messages = append(messages, human(fmt.Sprintf(test.format, blocks...)))
			generate(in("s"), t, m, messages)
			if got := textOf(inner.last().messages[2]); got != test.want {
				t.Errorf("sent:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

// sortedAtRoot sorts at the beginning of a prompt only.
type sortedAtRoot struct{}

func (sortedAtRoot) Name() string { return "sorted at root" }

func (sortedAtRoot) Order(dst []int, q contextpilot.Query) []int {
	name := "sorted"
	if q.Continued() {
		name = "retrieval"
	}
	p, err := contextpilot.NewPolicy(name)
	if err != nil {
		panic(err)
	}
	return p.Order(dst, q)
}

// The hint of a continued prompt is placed once, in the place of the old one.
func TestHintOfAContinuedPrompt(t *testing.T) {
	inner := &recorder{}
	pilot := newPilot(t, contextpilot.Config{Policy: "sorted"})
	m := langchain.Wrap(pilot, inner)
	_, first := hold(pilot, "s", "a")
	messages := []llms.MessageContent{human(first + "\n\nWhat?")}
	messages = append(messages, ai(generate(in("s"), t, m, messages)))
	_, second := hold(pilot, "s", "c", "a", "b")
	messages = append(messages, human(second+"\n\nWhy?"))
	generate(in("s"), t, m, messages)
	want := "<doc b>\nText of b.\n</doc>\n\n<doc c>\nText of c.\n</doc>\nPlease refer to [a] in the previous conversation.\n" +
		"Please read the context in the following priority order: [c] > [a] > [b] and answer the question.\n\nWhy?"
	if got := textOf(inner.last().messages[2]); got != want {
		t.Errorf("sent:\n%s\nwant:\n%s", got, want)
	}
}

// turned keeps the retriever's order at the beginning of a prompt, and turns it round behind a history.
type turned struct{}

func (turned) Name() string { return "turned" }

func (turned) Order(dst []int, q contextpilot.Query) []int {
	for i := range q.Blocks {
		dst = append(dst, i)
	}
	if q.Continued() {
		slices.Reverse(dst)
	}
	return dst
}

// A hint that becomes necessary is placed behind the blocks, unless the program wants none.
func TestHintThatWasNotThere(t *testing.T) {
	const hint = "\nPlease read the context in the following priority order: [b] > [a] > [c] and answer the question."
	for _, test := range []struct {
		name, hint string
		opts       []langchain.Option
	}{
		{"placed", hint, nil},
		{"not wanted", "", []langchain.Option{langchain.WithoutHint()}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inner := &recorder{}
			pilot := newPilot(t, contextpilot.Config{NewPolicy: func() contextpilot.Policy { return turned{} }})
			m := langchain.Wrap(pilot, inner, test.opts...)
			_, first := hold(pilot, "s", "a")
			messages := []llms.MessageContent{human(first + "\n\nWhat?")}
			messages = append(messages, ai(generate(in("s"), t, m, messages)))
			_, second := hold(pilot, "s", "b", "a", "c")
			messages = append(messages, human(second+"\n\nWhy?"))
			generate(in("s"), t, m, messages)
			want := "<doc c>\nText of c.\n</doc>\n\n<doc b>\nText of b.\n</doc>\nPlease refer to [a] in the previous conversation." +
				test.hint + "\n\nWhy?"
			if got := textOf(inner.last().messages[2]); got != want {
				t.Errorf("sent:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}
