package recorded_test

import (
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
)

// Templates are read as Python's str.format reads them, but for conversions and format specifications.
func TestParseHint(t *testing.T) {
	for _, c := range []struct {
		template, want, err string
		docs                int
	}{
		{"", "Please refer to [Doc a] from the previous conversation turn.", "", 1},
		{"see {doc_id}", "see a", "", 1},
		{"{source_request}/{turn_number}/{doc_id}", "1/1/a", "", 1},
		{"{doc_id}, {doc_id}", "a, a", "", 2},
		{"no placeholder", "no placeholder", "", 0},
		{`{{"doc": "{doc_id}"}}`, `{"doc": "a"}`, "", 1},
		{"{{doc_id}}", "{doc_id}", "", 0},
		{"{{{doc_id}}}{{{{", "{a}{{", "", 1},
		{"open {doc_id", "", "single {", 0},
		{"{", "", "single {", 0},
		{"doc_id}", "", "single }", 0},
		{"{doc_id}}", "", "single }", 0},
		{"{doc}", "", "placeholder {doc}", 0},
		{"{doc_id} {0}", "", "placeholder {0}", 0},
		{"{}", "", "placeholder {}", 0},
		{"{doc_id!r}", "", "placeholder {doc_id!r}", 0},
		{"{turn_number:02d}", "", "placeholder {turn_number:02d}", 0},
	} {
		h, err := recorded.ParseHint(c.template)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), "hint_template") || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: error %v, want one about %s", c.template, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.template, err)
			continue
		}
		x := recorded.NewChains[string](4)
		add(t, x, "1", "", "a")
		check(t, c.template, []string{c.want}, x.Add("2", "1", []string{"a"}, h, recorded.Names([]string{"a"})).Hints)
		check(t, c.template+": docs", c.docs, h.Docs())
	}
	// A doc that looks like a placeholder is no placeholder.
	x := recorded.NewChains[string](4)
	add(t, x, "1", "", "{turn_number}")
	check(t, "hint", []string{"{turn_number}@1 of 1"}, add(t, x, "2", "1", "{turn_number}").Hints)
}
