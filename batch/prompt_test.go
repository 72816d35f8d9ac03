package batch

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// rendered returns the prompt of a row with its units in the order of the prompt.
func rendered(t *testing.T, p Prompt, columns, cells []string, found ...contextpilot.Block) string {
	t.Helper()
	l, err := p.layout(columns, found != nil)
	if err != nil {
		t.Fatal(err)
	}
	units, err := l.units(cells, found)
	if err != nil {
		t.Fatal(err)
	}
	return l.head + strings.Join(units, "") + l.tail
}

func TestPromptGoldens(t *testing.T) {
	columns := []string{"city", "product", "complaint"}
	cells := []string{"Lima", "chair", "It broke.\nTwice."}
	for name, c := range map[string]struct {
		prompt Prompt
		want   string
	}{
		"columns on lines of their own": {
			Prompt{Text: "Who handles this?\nProduct: {{product}}\n{{ city }}, {{product}}\nDepartment:"},
			`Who handles this?
Product: chair
Lima, chair
Department:`,
		},
		"all other columns": {
			Prompt{Text: "Who handles this?\n\n{{*}}\nWhere: {{city}}\n\nDepartment:"},
			`Who handles this?

product: chair
complaint: It broke.
Twice.
Where: Lima

Department:`,
		},
		"some other columns, in the order of the table": {
			Prompt{Text: "Who?\n{{*}}\nDepartment:", Columns: []string{"product", "city"}},
			"Who?\ncity: Lima\nproduct: chair\nDepartment:",
		},
		"no columns named":       {Prompt{Text: "Who handles this?"}, "Who handles this?\n\ncity: Lima\nproduct: chair\ncomplaint: It broke.\nTwice.\n"},
		"no columns, line feeds": {Prompt{Text: "Who?\n\n\n\n", Columns: []string{"city"}}, "Who?\n\ncity: Lima\n"},
		"no text":                {Prompt{Columns: []string{"city"}}, "city: Lima\n"},
		"white space for a text": {Prompt{Text: " \n", Columns: []string{"city"}}, "city: Lima\n"},
		"no line feed at the end": {
			Prompt{Text: "In {{city}}: {{product}}"},
			"In Lima: chair\n",
		},
		"CRLF": {
			Prompt{Text: "Who?\r\n\r\n{{city}}\r\n{{*}}\r\nDepartment:\r\n"},
			"Who?\n\nLima\nproduct: chair\ncomplaint: It broke.\nTwice.\nDepartment:\n",
		},
		"JSON is text": {
			Prompt{Text: "Answer like {\"a\": {\"b\": 1}}.\n{\"city\": \"{{city}}\", \"of\": {\"product\": \"{{product}}\"}}\n{}}\n"},
			`Answer like {"a": {"b": 1}}.
{"city": "Lima", "of": {"product": "chair"}}
{}}
`,
		},
		"four braces stand for two": {
			Prompt{Text: "{{{{city}} is {{city}}. {{{city}}} {{{{{{city}}}} {{{{{ {{{{{{{{\n"},
			"{{city}} is Lima. {Lima} {{Lima}} {{{ {{{{\n",
		},
		"four braces in a text without columns": {
			Prompt{Text: "Use {{{{x}}.", Columns: []string{"city"}},
			"Use {{x}}.\n\ncity: Lima\n",
		},
		"text between columns": {
			Prompt{Text: "{{city}}\nThe product:\n{{product}}\n\nDepartment:"},
			"Lima\nThe product:\nchair\n\nDepartment:",
		},
		"nothing left for {{*}}": {
			Prompt{Text: "First\n{{*}}\nsecond\n{{city}}\n{{product}}\nthird\n{{complaint}}\nlast"},
			"First\nsecond\nLima\nchair\nthird\nIt broke.\nTwice.\nlast",
		},
		"nothing left for {{*}} at the end": {
			Prompt{Text: "{{city}} {{product}}\nmiddle\n{{complaint}}\nbehind\n{{*}}\nlast"},
			"Lima chair\nmiddle\nIt broke.\nTwice.\nbehind\nlast",
		},
		"examples": {
			Prompt{Text: "Who handles this?\n\n{{product}} in {{city}}\nDepartment:", Examples: []Example{
				{Cells: map[string]string{"product": "lamp", "city": "Oslo"}, Answer: "Sales"},
				{Cells: map[string]string{"product": "sofa", "city": "", "note": "not used"}, Answer: "Returns"},
			}},
			`Who handles this?

lamp in Oslo
Department: Sales

sofa in 
Department: Returns

chair in Lima
Department:`,
		},
		"examples without a label": {
			Prompt{Text: "Who?", Columns: []string{"city"}, Examples: []Example{{Cells: map[string]string{"city": "Oslo"}, Answer: "Sales"}}},
			"Who?\n\ncity: Oslo\nAnswer: Sales\n\ncity: Lima\nAnswer:",
		},
		"examples with an empty line behind": {
			Prompt{Text: "{{city}}\n\n", Examples: []Example{{Cells: map[string]string{"city": "Oslo"}, Answer: "Sales"}}},
			"Oslo\n\nAnswer: Sales\n\nLima\n\nAnswer:",
		},
		"examples with a line behind the label": {
			Prompt{Text: "{{city}}\n\nOne word:\n", Examples: []Example{{Cells: map[string]string{"city": "Oslo"}, Answer: "Sales"}}},
			"Oslo\n\nOne word:\nSales\n\nLima\n\nOne word:\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rendered(t, c.prompt, columns, cells); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Names that have a meaning of their own, or what ends a name, can be written in quotes.
func TestPromptNamesOfColumns(t *testing.T) {
	columns := []string{"*", "blocks", " city", "a}}b", "a b", `say "x"`, "{c", "line\nfeed", "größe"}
	cells := []string{"star", "block", "Lima", "braces", "space", "quotes", "open", "two", "XL"}
	text := `{{"*"}} {{blocks}} {{"blocks"}} {{" city"}} {{"a}}b"}} {{ a b }} {{say "x"}} {{ "say \"x\"" }} {{"{c"}} {{"line\nfeed"}} {{größe}}`
	want := "star block block Lima braces space quotes quotes open two XL\n"
	if got := rendered(t, Prompt{Text: text}, columns, cells); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	want = "*: star\nblocks: block\n city: Lima\na}}b: braces\na b: space\nsay \"x\": quotes\n{c: open\nline\nfeed: two\ngröße: XL\n"
	if got := rendered(t, Prompt{Text: "{{*}}"}, columns, cells); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPromptBlocks(t *testing.T) {
	columns, list := []string{"question", "found"}, `["First.", {"id": 7, "text": "Second."}]`
	first, second := rendered(t, Prompt{Text: "{{blocks}}", Blocks: "found"}, columns, []string{"", `["First."]`}),
		rendered(t, Prompt{Text: "{{blocks}}", Blocks: "found"}, columns, []string{"", `[{"id": 7, "text": "Second."}]`})
	if !strings.Contains(first, "First.") || !strings.HasSuffix(first, "\n") || !strings.HasPrefix(first, "<doc ") {
		t.Fatalf("a block alone: %q", first)
	}
	for name, c := range map[string]struct{ text, found, want string }{
		"where the text has them":     {"Q: {{question}}\n\n{{blocks}}\nA:", list, "Q: Why?\n\n" + first + second + "A:"},
		"in front":                    {"Read.\n{{blocks}}\n\nQ: {{question}}\nA:", list, "Read.\n" + first + second + "\nQ: Why?\nA:"},
		"else behind the columns":     {"Q: {{question}}\nA:", list, "Q: Why?\n" + first + second + "A:"},
		"behind all columns":          {"Answer.", list, "Answer.\n\nquestion: Why?\n" + first + second},
		"alone":                       {"Sum up.\n{{blocks}}\nSummary:", list, "Sum up.\n" + first + second + "Summary:"},
		"none, and the text stays":    {"Q: {{question}}\nPassages:\n{{blocks}}\nA:", "", "Q: Why?\nPassages:\nA:"},
		"none in a list":              {"{{blocks}}\nThat was all.\n{{question}}", " [] ", "That was all.\nWhy?\n"},
		"a text":                      {"{{question}}\n{{blocks}}", "First.", "Why?\n" + first},
		"the same block twice, twice": {"{{question}}\n{{blocks}}", `["First.","First."]`, "Why?\n" + first + first},
	} {
		t.Run(name, func(t *testing.T) {
			p := Prompt{Text: c.text, Blocks: "found"}
			if got := rendered(t, p, columns, []string{"Why?", c.found}); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	got := rendered(t, Prompt{Text: "{{question}} {{found}}\n"}, columns, []string{"Why?", "[x"}, contextpilot.Block{Text: "First."})
	if want := "Why? [x\n" + first; got != want {
		t.Errorf("blocks of a retriever: got %q, want %q", got, want)
	}
}

func TestReadBlocks(t *testing.T) {
	for cell, want := range map[string][]contextpilot.Block{
		"":                                 nil,
		" \n":                              nil,
		" [ ] ":                            {},
		" a [b] ":                          {{Text: " a [b] "}},
		`["", "\u00e9\n"]`:                 {{Text: ""}, {Text: "é\n"}},
		`[{"text":null,"content":"a"}]`:    {{Text: "a"}},
		`[{"page_content":"a","id":"\""}]`: {{Text: "a", ID: `"`}},
		`[{"text":"a","content":7,"id":null}, {"text":"b","id":"caf\u00e9"}]`: {{Text: "a"}, {Text: "b", ID: "café"}},
		`[{"text":"a","id":-1.50}]`: {{Text: "a", ID: "-1.50"}},
	} {
		if got, err := readBlocks(cell); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", cell, got, err, want)
		}
	}
	for cell, want := range map[string]string{
		"[1] a note":               `the cell "[1] a note" begins with [ and is no JSON list`,
		`["a", 7]`:                 `block 2 "7": want a text or an object`,
		`[null]`:                   `block 1 "null": want a text or an object`,
		`[{"Text":"a"}]`:           `it has no "text", "content" or "page_content"`,
		`[{"text":7}]`:             `"text" is 7, want a text`,
		`[{"text":"a","id":[1]}]`:  `"id" is [1], want a text or a number`,
		`[{"text":"a","id":true}]`: `"id" is true, want a text or a number`,
	} {
		if _, err := readBlocks(cell); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", cell, err, want)
		}
	}
}

// A block is the same unit wherever it stands, so that rows share it.
func TestPromptBlockIsTheSameUnitAtAnyPlace(t *testing.T) {
	p := Prompt{Text: "{{q}}\n\n{{blocks}}\n\n{{r}}", Blocks: "b", Order: PerRow}
	l, err := p.layout([]string{"q", "r", "b"}, false)
	if err != nil {
		t.Fatal(err)
	}
	one, err := l.units([]string{"1", "2", `["x","y"]`}, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.units([]string{"1", "2", `["y","x"]`}, nil)
	if err != nil || one[1] != other[2] || one[2] != other[1] {
		t.Errorf("%q and %q, %v", one, other, err)
	}
	if l.inPlace != "" || one[0] != "1\n\n" || one[3] != "\n2\n" {
		t.Errorf("%q, in place: %q", one, l.inPlace)
	}
}

func TestPromptErrors(t *testing.T) {
	columns := []string{"number", " city", "found"}
	for name, c := range map[string]struct {
		prompt    Prompt
		retrieved bool
		want      string
	}{
		"unknown column":          {Prompt{Text: "x\n{{number}}\nIn {{town}}"}, false, `prompt line 3: there is no column "town"; the table has "number", " city", "found"`},
		"white space":             {Prompt{Text: "{{city}}"}, false, `prompt line 1: there is no column "city"; column " city" has white space around its name, write {{" city"}}`},
		"no end":                  {Prompt{Text: "{{number\n}}"}, false, "prompt line 1: {{number has no }} (two braces that are text are written {{{{)"},
		"JSON in two braces":      {Prompt{Text: `{{number}} {{"a": 1}}`}, false, `prompt line 1: {{"a": 1}}: there is no }} behind the name (two braces that are text are written {{{{)`},
		"half a name":             {Prompt{Text: `{{"a`}, false, `prompt line 1: {{"a is not a JSON string (two braces that are text are written {{{{)`},
		"an empty name":           {Prompt{Text: "{{}}"}, false, `there is no column ""; the table has "number", " city", "found" (two braces that are text`},
		"{{*}} in a line":         {Prompt{Text: "all: {{*}}"}, false, "prompt line 1: {{*}} must stand on a line of its own"},
		"{{*}} in front":          {Prompt{Text: "{{ * }}."}, false, "prompt line 1: {{*}} must stand on a line of its own"},
		"{{*}} beside a column":   {Prompt{Text: "{{number}}{{*}}"}, false, "prompt line 1: {{*}} must stand on a line of its own"},
		"{{*}} twice":             {Prompt{Text: "{{*}}\n\n {{ * }}\n"}, false, "prompt line 3: {{*}} stands in line 1 already"},
		"{{blocks}} in a line":    {Prompt{Text: "{{number}}\nx {{blocks}}", Blocks: "found"}, false, "prompt line 2: {{blocks}} must stand on a line of its own"},
		"no blocks":               {Prompt{Text: "{{blocks}}"}, false, `{{blocks}}: the prompt has no blocks, and the table no column of this name; it has "number"`},
		"the column of blocks":    {Prompt{Text: "{{found}}", Blocks: "found"}, false, `prompt line 1: column "found" holds the blocks, which stand at {{blocks}} on a line of its own`},
		"blocks among columns":    {Prompt{Columns: []string{"found"}, Blocks: "found"}, false, `columns: "found" holds the blocks`},
		"unknown blocks":          {Prompt{Blocks: "f"}, false, `blocks: there is no column "f"; the table has "number", " city", "found"`},
		"unknown in columns":      {Prompt{Columns: []string{"f"}}, false, `columns: there is no column "f"; the table has "number"`},
		"columns without {{*}}":   {Prompt{Text: "{{number}}", Columns: []string{"found"}}, false, `columns: the prompt has no {{*}} where "found" could stand`},
		"a column in the system":  {Prompt{System: "You know {{number}}."}, false, "system: {{number}} stands there, but it is the same for all rows"},
		"spaces in the system":    {Prompt{System: "You {{{{ know {{ number }}."}, false, "system: {{ number }} stands there"},
		"quotes in the system":    {Prompt{System: `You know {{{"number"}}.`}, false, `system: {{"number"}} stands there`},
		"order":                   {Prompt{Order: "best"}, false, `order "best": want per-row, fixed or as-is`},
		"fixed order with blocks": {Prompt{Order: Fixed}, true, `order "fixed": rows with blocks have no columns in common`},
		"not UTF-8":               {Prompt{Text: "\xff{{number}}"}, false, "prompt: the text is not UTF-8"},
		"an example's answer":     {Prompt{Examples: []Example{{}, {Answer: "\xff"}}}, false, "answer of example 2: the text is not UTF-8"},
		"an example's cells":      {Prompt{Text: "{{number}}", Examples: []Example{{Cells: map[string]string{" city": ""}}}}, false, `example 1: it has no column "number"`},
		"an example's blocks": {
			Prompt{Text: "{{number}}", Blocks: "found", Examples: []Example{{Cells: map[string]string{"number": "", "found": "[1"}}}},
			false, `example 1: column "found": the cell "[1" begins with [`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.prompt.layout(columns, c.retrieved); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	if _, err := (&Prompt{Text: "{{*}}", Blocks: "b"}).layout([]string{"b"}, false); err != nil {
		t.Errorf("{{*}} with a column of blocks only: %v", err)
	}
	if _, err := (&Prompt{Text: "{{y}}"}).layout(nil, false); err == nil || !strings.HasSuffix(err.Error(), "the table has no columns") {
		t.Errorf("a table of empty objects: %v", err)
	}
	many := make([]string, 50)
	for i := range many {
		many[i] = strings.Repeat("x", 60+i)
	}
	if _, err := (&Prompt{Text: "{{y}}"}).layout(many, false); err == nil || len(err.Error()) > 2500 ||
		!strings.HasSuffix(err.Error(), "and 10 more") {
		t.Errorf("many columns: %v", err)
	}
}

// The order of a prompt is kept, whatever was asked for, if text stands between its units.
func TestPromptInPlace(t *testing.T) {
	for text, want := range map[string]string{
		"{{a}}\n\n \n{{b}}": "", "x\n{{a}}\n{{b}}\ny": "", "{{a}}\nand now\n{{b}}\nz\n{{c}}": `the prompt has text between its columns ("and now")`,
	} {
		l, err := (&Prompt{Text: text, Order: PerRow}).layout([]string{"a", "b", "c"}, false)
		if err != nil || l.inPlace != want {
			t.Errorf("%q: in place because of %q, want %q; %v", text, l.inPlace, want, err)
		}
	}
}

// What a retriever returns, and its errors, belong to the row that was asked for.
func TestPromptOfARetriever(t *testing.T) {
	task := Task{Prompt: Prompt{Text: "{{city}}"}, Retrieve: func(_ context.Context, cells map[string]string) ([]contextpilot.Block, error) {
		if cells["item"] == "bad" {
			return nil, context.DeadlineExceeded
		}
		return []contextpilot.Block{{Text: "about " + cells["item"]}}, nil
	}}
	prompts := promptsOf(t, "city,item\nLima,chair\nOslo,table\n", task)
	for i, want := range []string{"about chair", "about table"} {
		if !strings.Contains(prompts[i], want) || strings.Count(prompts[i], "about") != 1 {
			t.Errorf("row %d: %q, want %q", i, prompts[i], want)
		}
	}
	many := "city,item\n"
	for i := range 50 {
		many += fmt.Sprintf("Lima,%d.\n", i)
	}
	for i, prompt := range promptsOf(t, many, task) {
		if want := fmt.Sprintf("about %d.", i); !strings.Contains(prompt, want) {
			t.Errorf("row %d: %q, want %q", i, prompt, want)
		}
	}
	_, err := arranged(t, "city,item\nLima,chair\nOslo,bad\n", task)
	if err == nil || err.Error() != "line 3: retrieve: context deadline exceeded" {
		t.Error(err)
	}
}
