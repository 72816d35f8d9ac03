// Package htmltext makes Markdown of HTML pages: headings, paragraphs, list items, table rows and preformatted text, as
// far as they matter for cutting a page into passages. Links, emphasis and pictures leave only their text. It is a package of
// its own because it reads input from outside: it has its own bounds and its own fuzz targets.
package htmltext

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxDepth bounds the nesting of elements that is followed; what is nested deeper is left out. The parser itself refuses
// pages of 512 and more open elements.
const maxDepth = 600

// Markdown returns the text of a page. The page must be valid UTF-8. The parser accepts nearly everything; its error says
// what it does not.
func Markdown(page string) (string, error) {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return "", err
	}
	var w writer
	w.walk(root, 0)
	w.endBlock()
	return strings.TrimSpace(w.out.String()), nil
}

// writer collects blocks of text, with an empty line between them.
type writer struct {
	out  strings.Builder
	line strings.Builder // the block being read, its white space collapsed
	head string          // what the block begins with: "# " or "- "
}

func (w *writer) walk(n *html.Node, depth int) {
	if depth > maxDepth {
		return
	}
	switch n.Type {
	case html.TextNode:
		w.text(n.Data)
		return
	case html.ElementNode:
		w.element(n, depth)
		return
	}
	w.children(n, depth)
}

func (w *writer) children(n *html.Node, depth int) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.walk(c, depth+1)
	}
}

func (w *writer) element(n *html.Node, depth int) {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Iframe, atom.Svg, atom.Head, atom.Nav, atom.Select, atom.Object:
		if n.DataAtom == atom.Head {
			return // the title is repeated by the page's first heading, or is the name of the site
		}
		w.text(" ")
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.block(n, depth, strings.Repeat("#", int(n.Data[1]-'0'))+" ")
	case atom.Li:
		w.block(n, depth, "- ")
	case atom.Pre:
		w.pre(n)
	case atom.Br:
		w.text("\n")
	case atom.Td, atom.Th:
		w.text(" ")
		w.children(n, depth)
		w.text(" ")
	case atom.Img:
		w.text(" " + attribute(n, "alt") + " ")
	case atom.A, atom.Abbr, atom.B, atom.Bdi, atom.Bdo, atom.Cite, atom.Code, atom.Data, atom.Del, atom.Dfn, atom.Em, atom.Font,
		atom.I, atom.Ins, atom.Kbd, atom.Label, atom.Mark, atom.Q, atom.S, atom.Samp, atom.Small, atom.Span, atom.Strong, atom.Sub,
		atom.Sup, atom.Time, atom.Tt, atom.U, atom.Var, atom.Wbr:
		w.children(n, depth)
	default:
		w.block(n, depth, "")
	}
}

// block writes what is in the element apart from what is around it.
func (w *writer) block(n *html.Node, depth int, head string) {
	w.endBlock()
	if head != "" { // else a paragraph that begins a list item has the item's
		w.head = head
	}
	w.children(n, depth)
	w.endBlock()
	w.head = ""
}

func (w *writer) text(s string) { w.line.WriteString(s) }

func (w *writer) endBlock() {
	text := strings.Join(strings.Fields(w.line.String()), " ")
	w.line.Reset()
	if text == "" {
		return
	}
	if w.head == "" || w.head == "- " {
		text = escape(text)
	}
	w.separate(w.head == "- ")
	w.out.WriteString(w.head)
	w.out.WriteString(text)
	w.head = "" // what else is in the element is a paragraph of its own
}

// separate puts an empty line between blocks, and none between items of a list.
func (w *writer) separate(item bool) {
	so := w.out.String()
	switch {
	case so == "":
	case item && strings.HasPrefix(so[strings.LastIndexByte(so, '\n')+1:], "- "):
		w.out.WriteByte('\n')
	default:
		w.out.WriteString("\n\n")
	}
}

// pre writes preformatted text as a fenced code block.
func (w *writer) pre(n *html.Node) {
	w.endBlock()
	var code strings.Builder
	raw(n, &code, 0)
	text := strings.Trim(code.String(), "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	w.separate(false)
	w.out.WriteString(fence + "\n" + text + "\n" + fence)
}

func raw(n *html.Node, out *strings.Builder, depth int) {
	if depth > maxDepth {
		return
	}
	if n.Type == html.TextNode {
		out.WriteString(n.Data)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		raw(c, out, depth+1)
	}
}

// escape keeps a paragraph from being read as a heading, a code block or a line under a title.
func escape(text string) string {
	switch text[0] {
	case '#', '`', '~', '=', '-':
		return `\` + text
	}
	return text
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
