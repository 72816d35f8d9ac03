package notes_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/internal/prompt/notes"
)

func TestForm(t *testing.T) {
	for _, c := range []struct {
		template string
		is, not  []string
	}{
		{
			"Please refer to [{label}] in the previous conversation.",
			[]string{
				"Please refer to [a] in the previous conversation.", "x please  REFER\nto\u00a0[b.md#1] in the pre\u200bvious " +
					"conversation", `Please refer to \u005ba] in\nthe previous conversation`,
				`Please refer to [a] in\the previous conversation`,
			},
			[]string{
				"", "Please refer to the manual in the previous conversation.", "Please refer to [a] in the conversation.",
				"in the previous conversation. Please refer to [a]",
			},
		},
		{"Relevance: {order}.", []string{"Relevance: [a] > [b].", "relevance—[a]"}, []string{"Relevance: high", "the relevance of [a]", "> ["}},
		{"{order}", []string{"[a] > [b]", "x [a]>[b] y"}, []string{"[a]", "a > b", "> [b] ["}},
		{"{order} zuerst lesen", []string{"[a] > [b] zuerst lesen", "Zuerst   lesen"}, []string{"zuerst"}},
		{"见 {label} 上文", []string{"见 [a] 上文"}, []string{"见", "上文见"}},
	} {
		f := notes.FormOf(c.template, "order")
		for _, s := range c.is {
			if !f.In(s) {
				t.Errorf("%s: %q is none", c.template, s)
			}
		}
		for _, s := range c.not {
			if f.In(s) {
				t.Errorf("%s: %q is one", c.template, s)
			}
		}
	}
	if (notes.Form{}).In("x") {
		t.Error("the zero form")
	}
}
