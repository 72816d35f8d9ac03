package htmltext_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/retriever/bleve/internal/htmltext"
)

func TestMarkdown(t *testing.T) {
	for _, tc := range []struct{ name, page, want string }{
		{"empty", "", ""},
		{"text alone", "a  <b>bold</b>\n word", "a bold word"},
		{
			"headings", "<h1>Guide</h1>intro<h2>Install <em>it</em></h2><p>Copy.</p><p>Run.</p>",
			"# Guide\n\nintro\n\n## Install it\n\nCopy.\n\nRun.",
		},
		{"not shown", "<head><title>T</title><style>p{}</style></head><nav>menu</nav><script>x()</script><p>shown</p>", "shown"},
		{"list", "<ul><li>one<li>two</ul>after", "- one\n- two\n\nafter"},
		{"item with paragraphs", "<ul><li><p>one</p><p>more</p></li></ul>", "- one\n\nmore"},
		{"table", "<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a b\n\n1 2"},
		{"code", "<p>see</p><pre><code>if a &lt; b {\n\n\treturn\n}</code></pre>", "see\n\n```\nif a < b {\n\n\treturn\n}\n```"},
		{"fence in code", "<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````"},
		{"no markup in text", "<p># not a heading</p><p>```</p><p>---</p>", "\\# not a heading\n\n\\```\n\n\\---"},
		{"entities and alt", "caf&eacute; <img alt='a cat'>", "café a cat"},
		{"words stay apart", "<p>one<br>two</p><div>three</div>", "one two\n\nthree"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := htmltext.Markdown(tc.page)
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestDeepNesting(t *testing.T) {
	page := strings.Repeat("<div>", 100_000) + "deep"
	if got, err := htmltext.Markdown(page); err == nil {
		t.Errorf("got %q, want the parser's error", got)
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{
		"<h1>a</h1><p>b", "<pre>\n```", "<table><td><li>", "<svg><p>x</svg>", "<select><option>a", "</p><h7>", "<template><p>a", "&#0;&#x110000;",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, page string) {
		if !utf8.ValidString(page) {
			return
		}
		got, err := htmltext.Markdown(page)
		if err == nil && !utf8.ValidString(got) {
			t.Errorf("%q gave invalid UTF-8: %q", page, got)
		}
	})
}
