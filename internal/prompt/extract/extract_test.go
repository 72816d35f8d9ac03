package extract_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/prompt/extract"
)

func mustFind(t *testing.T, text string, o extract.Options) extract.Found {
	t.Helper()
	f, ok := extract.Find(text, o)
	if !ok {
		t.Fatalf("nothing found in %q", text)
	}
	return f
}

func keys(f extract.Found) []string {
	var out []string
	for _, d := range f.Docs {
		out = append(out, d.Key)
	}
	return out
}

func TestParseMode(t *testing.T) {
	for name, want := range map[string]extract.Mode{
		"": extract.Auto, "auto": extract.Auto, "nonsense": extract.Auto, " XML_Tag ": extract.XMLTag, "numbered": extract.Numbered,
		"json_results": extract.JSONResults, "separator": extract.Separator, "MARKDOWN_HEADER": extract.MarkdownHeader,
	} {
		if got := extract.ParseMode(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	tests := []struct {
		name, text string
		o          extract.Options
		want       []string
	}{
		{"an unknown mode is auto", "<doc>A</doc><doc>B</doc>", extract.Options{Mode: "x"}, []string{"A", "B"}},
		{
			"words and single tags about the format", "Use <documents> and [1].\n<documents><document>A</document></documents> not </documents>",
			extract.Options{},
			[]string{"A"},
		},
		{
			"an example of the format", "As in <document>text</document>: <documents><document>A</document><document>B</document></documents>",
			extract.Options{},
			[]string{"A", "B"},
		},
		{
			"an empty wrapper before", "In <documents></documents>: <documents><document>A</document></documents>",
			extract.Options{},
			[]string{"A"},
		},
		{"an empty document", "<docs><doc>A</doc><doc> </doc></docs>", extract.Options{}, []string{"A", ""}},
		{
			"other tags in a document", "<docs><doc>A <file>x</file> <references></doc><doc><p>B</p></doc></docs>",
			extract.Options{},
			[]string{"A <file>x</file> <references>", "<p>B</p>"},
		},
		{
			"the outer list", "<docs><doc>A <files><file>x</file><file>y</file></files></doc><doc>B</doc></docs>",
			extract.Options{},
			[]string{"A <files><file>x</file><file>y</file></files>", "B"},
		},
		{"groups of documents", "<docs><file><doc>A</doc></file><file><doc>B</doc></file></docs>", extract.Options{}, []string{
			"<doc>A</doc>",
			"<doc>B</doc>",
		}},
		{
			"a list inside a single tag", "<context><documents><document>A</document><document>B</document></documents></context>",
			extract.Options{},
			[]string{"A", "B"},
		},
		{
			"a longer name is another name", "<documents><document><document_content>A</document_content></document></documents>",
			extract.Options{},
			[]string{"<document_content>A</document_content>"},
		},
		{
			"known tags when the asked one is not there", "<doc>A</doc><doc>B</doc>",
			extract.Options{Mode: extract.XMLTag, Tag: "item"},
			[]string{"A", "B"},
		},
		{
			"the asked tag before others", "<docs><doc>A</doc></docs><hits><hit>B</hit></hits>",
			extract.Options{Mode: extract.XMLTag, Tag: "hit"},
			[]string{"B"},
		},
		{
			"the asked tag in lower case", "<items><item>A</item><item>B</item></items>",
			extract.Options{Mode: extract.XMLTag, Tag: "Item"},
			[]string{"A", "B"},
		},
		{
			"the asked tag as it is", "<Items><Item>A</Item><Item>B</Item></Items>",
			extract.Options{Mode: extract.XMLTag, Tag: "Item"},
			[]string{"A", "B"},
		},
		{
			"a tag of signs that mean something elsewhere", "<a.*>A</a.*><a.*>B</a.*>",
			extract.Options{Mode: extract.XMLTag, Tag: "a.*"},
			[]string{"A", "B"},
		},

		{"labels on lines, citations inside", "Sources:\n[1] A [7]\n  more [2]\n[2] B [1].\n", extract.Options{}, []string{
			"A [7]\n  more [2]",
			"B [1].",
		}},
		{"labels that go on from an earlier text", "[4] A\n[5] B", extract.Options{}, []string{"A", "B"}},
		{"two labels in one line", "[1] A [2] B", extract.Options{}, []string{"A", "B"}},
		{"two labels after words, asked for", "See [1] A [2] B", extract.Options{Mode: extract.Numbered}, []string{"A", "B"}},
		{"labels from 0", "[0] A\n[1] B", extract.Options{}, []string{"A", "B"}},
		{"labels that touch the word", "[1]A\n[2]B", extract.Options{}, []string{"A", "B"}},

		{
			"results of all kinds", `{"results":["a",{"uri":" u ","href":"h"},[1,2],null,{"url":"","url":"last"},{"path":7}]}`,
			extract.Options{},
			[]string{`"a"`, "u", "[1, 2]", "null", "last", `{"path": 7}`},
		},
		{"signs in a result's words", `{"results":[{"t":"a,b:\"c\\"},1]}`, extract.Options{}, []string{`{"t": "a,b:\"c\\"}`, "1"}},

		{"separators at the ends", "---\nA\n---\n\n---\nB\n---\n", extract.Options{Mode: extract.Separator}, []string{"A", "B"}},
		{"a separator inside a line", "A --- B\n---\nC", extract.Options{Mode: extract.Separator}, []string{"A --- B", "C"}},

		{
			"comments in code are no headers", "# A\n```sh\n# comment\n```\n## B\nb",
			extract.Options{Mode: extract.MarkdownHeader},
			[]string{"# A\n```sh\n# comment\n```", "## B\nb"},
		},
		{"an empty header", "#\n## B\n#tag", extract.Options{Mode: extract.MarkdownHeader}, []string{"#", "## B\n#tag"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, keys(mustFind(t, tt.text, tt.o))); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
		})
	}
}

// The asked tag in lower case is looked for only where it does not stand as it was asked for: there it would be inside a document.
func TestFindLowerCaseInside(t *testing.T) {
	inside := "<Document>Guide: <document>first do this</document> and then <document>second do that</document></Document>"
	for _, text := range []string{
		inside,
		"<Documents>\n<Document>wrap it in a <Document> tag</Document>\n" + inside + "\n</Documents>",
		strings.TrimPrefix(inside, "<Document>"),
	} {
		if f, ok := extract.Find(text, extract.Options{Mode: extract.XMLTag, Tag: "Document"}); ok {
			t.Errorf("%q in %q", keys(f), text)
		}
	}
}

// Where marks can be read in two ways, a document could make others, end early or swallow what follows.
func TestFindNothing(t *testing.T) {
	tests := []struct {
		name, text string
		mode       extract.Mode
	}{
		{"empty", "", ""},
		{"an empty wrapper", "<documents></documents>", ""},
		{"a document in a document", "<docs><doc>A<doc>B</doc></doc></docs>", ""},
		{"a tag opened in a document", "<docs><doc>A <doc> </doc><doc>B</doc></docs>", ""},
		{"a tag closed in a document", "<docs><doc>A </doc> </doc><doc>B</doc></docs>", ""},
		{"a document that ends the wrapper", "<docs><doc>A</doc></docs> x</doc><doc>B</doc></docs>", ""},
		{"a document that ends the wrapper, well formed", "<docs><doc>A</doc></docs><doc>x</doc><doc>B</doc></docs>", ""},
		{"a document that ends the wrapper and begins one", "<docs><doc>A</doc></docs><docs><doc>x</doc><doc>B</doc></docs>", ""},
		{"a document that holds a list of the same documents", "<docs><doc>A</doc><files><doc>x</doc></files><doc>B</doc></docs>", ""},
		{"a document that begins a wrapper", "<docs><doc>A</doc><docs><doc>x</doc><doc>B</doc></docs>", ""},
		{"a document that ends the wrapper in an odd way", "<docs><doc>A</doc></docs ><doc>x</doc></docs>", ""},
		{"a wrapper that is never closed", "<docs><doc>A</doc></doc>", ""},
		{"a wrapper inside the other", "<docs><docs><doc>A</doc></docs><doc>B</doc></docs>", ""},
		{"two wrappers", "<docs><doc>A</doc></docs><docs><doc>B</doc></docs>", ""},
		{"items in several groups", "<p><docs><doc>A</doc></docs></p><p><docs><doc>B</doc></docs></p>", "xml_tag"},
		{"a list inside a document of which nothing is sure", "<docs><doc>A <doc> <files><file>x</file><file>y</file></files></doc></docs>", ""},
		{"a list inside a document that ends the wrapper", "<docs><doc>A " +
			"<files><file>x</file><file>y</file></files></doc></docs><docs><doc></doc><doc>B</doc></docs>", ""},
		{"words about tags", "write <doc></doc> around each, so <doc>A</doc>", ""},
		{"closed at once", "<docs><doc/><doc>A</doc></docs>", ""},
		{"a quoted angle bracket", `<docs><doc title="a > b">A</doc><doc>B</doc></docs>`, ""},
		{"other letters", "<Docs><Doc>A</Doc><Doc>B</Doc></Docs>", ""},
		{"tags in JSON", `{"a":"<docs><doc>A</doc><doc>B</doc></docs>"}`, "xml_tag"},
		{"labels in JSON", "{\"a\":\n[1]\n,\"b\":\n[2]\n}", "numbered"},
		{"tags in a JSON string", `"<docs><doc>A</doc><doc>B</doc></docs>"`, ""},
		{"labels in a document of which nothing is sure", "<docs><doc>\n[1] A\n[2] B</doc><doc>C</docs>", ""},

		{"one label", "[1] A", ""},
		{"labels of a document that has labels", "[1] A\n[2] see\n[1] x\n[2] y\n[3] C", ""},
		{"a label line in a document", "[1] A\n[7] x\n[2] B", ""},
		{"citations", "Smith did x [1], and Doe did y [2].", ""},
		{"citations that happen to count", "Smith [1] did x, Doe [2] did y.", ""},
		{"citations out of order", "as [3] says [1] and [2] too", ""},
		{"indexes", "a[1] = b[2]\nc[3] = 4", "numbered"},
		{"links", "[1]: http://a\n[2]: http://b", ""},
		{"labels without text", "[1]\n[2] B", ""},
		{"labels with zeros", "[01] A\n[02] B", ""},
		{"labels too long to count", "[9999999999] A\n[10000000000] B", ""},

		{"one result", `{"results":[1]}`, ""},
		{"two lists of results", `{"results":[1,2],"r\u0065sults":[3,4]}`, ""},
		{"results that are no list", `{"results":{"a":1,"b":2}}`, ""},
		{"results further in", `{"a":{"results":[1,2]}}`, ""},
		{"JSON that is cut off", `{"results":[{"a":1},{"b":2}]`, ""},
		{"not an object", `[1,2]`, "json_results"},
		{"nested too deep", `{"results":[1,` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `]}`, ""},

		{"separator not asked for", "A\n---\nB", ""},
		{"headers not asked for", "# A\n# B", ""},
		{"one part", "A\n---\n", "separator"},
		{"an indented separator that would become one", "A\n---\n ---\nB", "separator"},
		{"the same at the end of a document", "A\n--- \n---\nB", "separator"},
		{"one section", "# A\n### B", "markdown_header"},
		{"code that is never closed", "# A\n# B\n~~~\nx\n~~", "markdown_header"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if f, ok := extract.Find(tt.text, extract.Options{Mode: tt.mode}); ok {
				t.Errorf("found %q in %q", keys(f), tt.text)
			}
		})
	}
}

// What the recorded layout has no place for makes a text not plain, and survives the other ways of writing it.
func TestWrite(t *testing.T) {
	tests := []struct {
		name, text, mode             string
		plain                        bool
		permuted, without, collapsed string // backwards; without the first; all of them as "N"
		rebuilt                      string // backwards
		withoutLast                  string
	}{
		{
			name: "tags", text: "a <docs><doc>A</doc>\n\n<doc> B </doc></docs> z", plain: true,
			permuted: "a <docs><doc> B </doc>\n\n<doc>A</doc></docs> z", without: "a <docs>\n\n<doc> B </doc></docs> z",
			collapsed: "a <docs>\n<doc>N</doc>\n</docs> z", rebuilt: "a <docs>\n<doc>B</doc>\n<doc>A</doc>\n</docs> z",
			withoutLast: "a <docs><doc>A</doc>\n\n</docs> z",
		},
		{
			name: "attributes and words between", text: `<docs n="2"><doc id='1'>A</doc> and <doc>B</doc></docs>`,
			permuted: `<docs n="2"><doc>B</doc> and <doc id='1'>A</doc></docs>`, without: `<docs n="2"> and <doc>B</doc></docs>`,
			collapsed: `<docs n="2"><doc>N</doc> and </docs>`, rebuilt: "<docs>\n<doc>B</doc>\n<doc>A</doc>\n</docs>",
			withoutLast: `<docs n="2"><doc id='1'>A</doc> and </docs>`,
		},
		{
			name: "labels", text: "See:\n[1] A\n[2] B\n", plain: true,
			permuted: "See:\n[2] B\n[1] A\n", without: "See:\n\n[2] B\n", collapsed: "See:\n\n[1] N",
			rebuilt: "See:\n\n[1] B\n[2] A", withoutLast: "See:\n[1] A\n\n",
		},
		{
			name: "labels that are cited", text: "[1] A\n[2] B, see [1]",
			permuted: "[2] B, see [1]\n[1] A", without: "\n[2] B, see [1]", collapsed: "[1] N\n",
			rebuilt: "[1] B, see [1]\n[2] A", withoutLast: "[1] A\n",
		},
		{
			name: "labels from 4", text: "[4] A\n[5] B",
			permuted: "[5] B\n[4] A", without: "\n[5] B", collapsed: "[4] N\n", rebuilt: "[1] B\n[2] A", withoutLast: "[4] A\n",
		},
		{
			name: "results", text: ` {"results": [ {"u":"\u00e9\/"} , 1.0 ], "n":1e5} `, plain: true,
			permuted: ` {"results": [ 1.0 , {"u":"\u00e9\/"} ], "n":1e5} `, without: ` {"results": [ 1.0 ], "n":1e5} `,
			collapsed:   "{\n  \"results\": [\n    \"N\"\n  ],\n  \"n\": 1e5\n}",
			rebuilt:     "{\n  \"results\": [\n    1.0,\n    {\n      \"u\": \"\\u00e9\\/\"\n    }\n  ],\n  \"n\": 1e5\n}",
			withoutLast: ` {"results": [ {"u":"\u00e9\/"} ], "n":1e5} `,
		},
		{
			name: "separators", text: "A\n\n---\nB\n", mode: "separator", plain: true,
			permuted: "B\n\n---\nA\n", without: "B\n", collapsed: "N", rebuilt: "B\n---\nA", withoutLast: "A\n",
		},
		{
			name: "separators with nothing between", text: "---\nA\n---\n---\nB", mode: "separator",
			permuted: "---\nB\n---\n---\nA", without: "---\nB", collapsed: "---\nN", rebuilt: "B\n---\nA", withoutLast: "---\nA",
		},
		{
			name: "headers", text: "i\n\n# A\na\n## B\n", mode: "markdown_header", plain: true,
			permuted: "i\n\n## B\n# A\na\n", without: "i\n\n\n## B\n", collapsed: "i\n\nN", rebuilt: "i\n\n## B\n\n# A\na",
			withoutLast: "i\n\n# A\na\n\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := mustFind(t, tt.text, extract.Options{Mode: extract.Mode(tt.mode)})
			if f.Plain() != tt.plain {
				t.Errorf("plain %v, want %v", f.Plain(), tt.plain)
			}
			for what, x := range map[string][2]string{
				"permuted": {f.Permute(backwards(f)), tt.permuted}, "rebuilt": {f.Rebuild(backwards(f)), tt.rebuilt},
				"without the first":     {f.Without(map[int]bool{0: true, 9: true}), tt.without},
				"without the last":      {f.Without(map[int]bool{len(f.Docs) - 1: true}), tt.withoutLast},
				"collapsed":             {f.Collapse("N"), tt.collapsed},
				"without nothing":       {f.Without(nil), tt.text},
				"an order that repeats": {f.Rebuild([]int{0, 0}), tt.text}, "an order too high": {f.Rebuild([]int{2}), tt.text},
				"an order too short": {f.Permute([]int{0}), tt.text}, "an order too low": {f.Permute([]int{-1, 0}), tt.text},
			} {
				if x[0] != x[1] {
					t.Errorf("%s:\n got %q\nwant %q", what, x[0], x[1])
				}
			}
		})
	}
}

func TestWithoutAll(t *testing.T) {
	for text, want := range map[string]string{
		"<docs>\n<doc>A</doc>\n</docs>": "<docs>\n\n</docs>",
		`{"results": [ 1, 2 ], "k":3}`:  `{"results": [  ], "k":3}`,
		"[1] A [2] B\n":                 " \n",
	} {
		f := mustFind(t, text, extract.Options{})
		if got := f.Without(map[int]bool{0: true, 1: true}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f := mustFind(t, `{"results":[1,2]}`, extract.Options{})
	if got, want := f.Collapse("a \"b\" <c>\n"), "{\n  \"results\": [\n    \"a \\\"b\\\" <c>\\n\"\n  ]\n}"; got != want {
		t.Errorf("a note in JSON: %q, want %q", got, want)
	}
}

// The recorded layout of deep and crowded JSON would be mostly white space.
func TestPlainIsInProportion(t *testing.T) {
	deep := `{"results":[1,` + strings.Repeat("[", 29) + strings.Repeat("1,", 10_000) + "1" + strings.Repeat("]", 29) + `]}`
	f := mustFind(t, deep, extract.Options{})
	if f.Plain() {
		t.Error("plain, though its layout is far longer than the text")
	}
	if got := f.Rebuild(inOrder(f)); len(got) > 40*len(deep) {
		t.Errorf("%d bytes of %d", len(got), len(deep))
	}
}
