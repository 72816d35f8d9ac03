package contextpilot_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

func TestBadConfig(t *testing.T) {
	for _, c := range []struct {
		name  string
		cfg   contextpilot.Config
		field string
		value string
	}{
		{"policy", contextpilot.Config{Policy: "fastest"}, "Policy", `"fastest"`},
		{"policy lists the names", contextpilot.Config{Policy: "fastest"}, "Policy", "knowledge-tree"},
		{"policy in upper case", contextpilot.Config{Policy: "Sorted"}, "Policy", `"Sorted"`},
		{"nil policy", contextpilot.Config{NewPolicy: func() contextpilot.Policy { return nil }}, "NewPolicy", "nil"},
		{"dedup", contextpilot.Config{Dedup: 3}, "Dedup", "3"},
		{"block size", contextpilot.Config{BlockSize: -16}, "BlockSize", "-16"},
		{"capacity", contextpilot.Config{Capacity: -1}, "Capacity", "-1"},
		{"scopes", contextpilot.Config{MaxScopes: -2}, "MaxScopes", "-2"},
		{"tokens of a note", contextpilot.Config{Notes: contextpilot.Notes{Tokens: -4}}, "Notes.Tokens", "-4"},
		{"order note without order", contextpilot.Config{Notes: contextpilot.Notes{Order: "by rank"}}, "Notes.Order", "{order}"},
		{"order note of two lines", contextpilot.Config{Notes: contextpilot.Notes{Order: "a\n{order}"}}, "Notes.Order", "one line"},
		{"order note with a carriage return", contextpilot.Config{Notes: contextpilot.Notes{Order: "a\r{order}"}}, "Notes.Order", "one line"},
		{"order note with a label", contextpilot.Config{Notes: contextpilot.Notes{Order: "{order} {label}"}}, "Notes.Order", "{label}"},
		{"location note without label", contextpilot.Config{Notes: contextpilot.Notes{Location: "turn {turn}"}}, "Notes.Location", "{label}"},
		{"location note with a block", contextpilot.Config{Notes: contextpilot.Notes{Location: "</DOC>{label}"}}, "Notes.Location", "</DOC>"},
		{
			"location note that a label completes",
			contextpilot.Config{Notes: contextpilot.Notes{Location: "</D{label}>"}},
			"Notes.Location",
			"</D{label}>",
		},
		{
			"location note with an open brace",
			contextpilot.Config{Notes: contextpilot.Notes{Location: "{label} {"}},
			"Notes.Location",
			"{label} {",
		},
		{
			"location note with an unknown placeholder",
			contextpilot.Config{Notes: contextpilot.Notes{Location: "{label} {query}"}},
			"Notes.Location", "{query}",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := contextpilot.New(c.cfg)
			if p != nil || !errors.Is(err, contextpilot.ErrBadConfig) || !strings.Contains(err.Error(), c.field) || !strings.Contains(err.Error(),
				c.value) {
				t.Errorf("got %v, %v; want an error that names %s and %s", p, err, c.field, c.value)
			}
		})
	}
}

func TestGoodConfig(t *testing.T) {
	for name, cfg := range map[string]contextpilot.Config{
		"zero":            {},
		"no bound":        {MaxRequests: -1},
		"own policy wins": {Policy: "no such", NewPolicy: func() contextpilot.Policy { return &broken{} }},
		"own words":       {Notes: contextpilot.Notes{Order: "Rank: {order}", Location: "{label}: see turn {turn} (<b>{label}</b>)"}},
	} {
		if _, err := contextpilot.New(cfg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNotes(t *testing.T) {
	two := func(n contextpilot.Notes) (contextpilot.Plan, contextpilot.Plan) {
		p := newPilot(t, contextpilot.Config{Policy: "sorted", Notes: n})
		one := p.Plan(contextpilot.Request{ID: "1", Session: "s", Blocks: blocks("b", "a")})
		return one, p.Plan(contextpilot.Request{
			ID: "2", Session: "s", Blocks: blocks("b", "d", "c"), Prior: []string{one.Prompt("q")},
			Behind: one.End,
		})
	}
	one, second := two(contextpilot.Notes{
		Hint: contextpilot.HintFull, AlwaysHint: true, Order: "Rank: {order}.",
		Location: "{label} stands in turn {turn}, as {label}", AfterQuestion: true,
	})
	equal(t, "order", "Rank: [b] > [a].", one.Hint)
	equal(t, "order with a reference", "Rank: [b] > [d] > [c].", second.Hint)
	equal(t, "behind the question", true, strings.HasSuffix(second.Prompt("Why?"),
		"</doc>\nb stands in turn 1, as b\nWhy?\nRank: [b] > [d] > [c]."))
	one, second = two(contextpilot.Notes{Hint: contextpilot.HintNone, NoLocation: true})
	equal(t, "no notes", 0, len(notes(one))+len(notes(second)))
	equal(t, "the reference is in the plan", "c d; b", sent(second)+"; "+refs(second))
	equal(t, "and not in the prompt", "<doc c>\ntext of c\n</doc>\n<doc d>\ntext of d\n</doc>\nWhy?", second.Prompt("Why?"))
	_, second = two(contextpilot.Notes{Hint: contextpilot.HintNone})
	equal(t, "location note alone", 1, len(notes(second)))
}

func TestPolicyNames(t *testing.T) {
	equal(t, "names", []string{"retrieval", "sorted", "frequency", "recency", "random", "knowledge-tree", "paper", "best", "oracle"},
		contextpilot.PolicyNames())
	former, err := contextpilot.NewPolicy("contextpilot")
	if err != nil || former.Name() != "paper" {
		t.Errorf("the former name: %v (%v)", former, err)
	}
	for _, name := range contextpilot.PolicyNames() {
		p, err := contextpilot.NewPolicy(name)
		if err != nil || p.Name() != name {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	_, err = contextpilot.NewPolicy("")
	if !errors.Is(err, contextpilot.ErrUnknownPolicy) || !strings.Contains(err.Error(), "recency") {
		t.Errorf("error %v", err)
	}
	equal(t, "the zero Config's policy", contextpilot.DefaultPolicy, newPilot(t, contextpilot.Config{}).Plan(contextpilot.Request{}).Policy)
}
