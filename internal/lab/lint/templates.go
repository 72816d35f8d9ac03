package lint

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/ragpilot/ragpilot/internal/prompt/gotemplate"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
	"github.com/ragpilot/ragpilot/prefixdiff"
)

// TemplateFinding is an action of a Go template whose value changes from request to request.
type TemplateFinding struct {
	Line       int
	Cause      prefixdiff.Cause
	Expr       string // {{.Now}}
	LostTokens int    // of the template's own text behind it
}

// leastFollowing is how many tokens of the template have to follow.
const leastFollowing = 16

// Templates checks a Go template, and those that are defined in it. It knows an action by its name, such as .Now or .Session.ID, so it
// finds nothing in what a template gets under another name. The elements of a range are documents or tools as a rule: their names and
// identifiers are no findings, and keys of a map have an order. An action that is repeated is found once, where it stands first. What
// is lost behind a second action is lost behind the first one, too. Functions that are not known are no errors. An error names the line.
func Templates(name, text string) ([]TemplateFinding, error) {
	f, err := gotemplate.Parse(name, text)
	if err != nil {
		if at, ok := strings.CutPrefix(err.Error(), name+":"); ok {
			err = errors.New("line " + at)
		}
		return nil, err
	}
	var out []TemplateFinding
	for _, t := range f.Trees {
		if t.Root == nil {
			continue
		}
		w := walker{file: f, variables: map[string]origin{"$": {}}}
		w.list(t.Root, origin{}, 0)
		out = append(out, w.found...)
	}
	slices.SortStableFunc(out, func(a, b TemplateFinding) int { return cmp.Compare(a.Line, b.Line) })
	return out, nil
}

// origin is where a value comes from.
type origin struct {
	names   []string // of fields and functions
	element bool     // of a list or map
}

// of returns the value that some more names lead to.
func (o origin) of(names ...string) origin {
	return origin{slices.Concat(o.names, names), o.element}
}

// walker walks through one template.
type walker struct {
	file      *gotemplate.File
	variables map[string]origin
	found     []TemplateFinding
}

// list walks through a list. Behind it follow that many tokens of the template.
func (w *walker) list(list *parse.ListNode, dot origin, behind int) {
	if list == nil {
		return
	}
	following := make([]int, len(list.Nodes)) // tokens behind each node
	n := behind
	for i, node := range slices.Backward(list.Nodes) {
		following[i] = n
		n += own(node)
	}
	for i, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			value := w.pipe(node.Pipe, dot)
			w.declare(node.Pipe, value)
			if len(node.Pipe.Decl) > 0 {
				continue // it writes nothing
			}
			if following[i] < leastFollowing || isName(value) && (i == 0 || !names(list.Nodes[i-1])) {
				continue
			}
			if cause, ok := value.cause(); ok {
				w.add(TemplateFinding{w.file.Line(node), cause, gotemplate.Source(node), following[i]})
			}
		case *parse.IfNode:
			w.declare(node.Pipe, w.pipe(node.Pipe, dot))
			w.list(node.List, dot, following[i])
			w.list(node.ElseList, dot, following[i])
		case *parse.WithNode:
			value := w.pipe(node.Pipe, dot)
			w.declare(node.Pipe, value)
			w.list(node.List, value, following[i])
			w.list(node.ElseList, dot, following[i])
		case *parse.RangeNode:
			value := w.pipe(node.Pipe, dot)
			value.element = true
			w.declare(node.Pipe, value)
			w.list(node.List, value, following[i])
			w.list(node.ElseList, dot, following[i])
		}
	}
}

// add appends a finding, unless the same action stands further up.
func (w *walker) add(f TemplateFinding) {
	same := func(g TemplateFinding) bool { return g.Expr == f.Expr }
	if !slices.ContainsFunc(w.found, same) {
		w.found = append(w.found, f)
	}
}

// isName reports whether a value is .Name alone, which may be the name of anything.
func isName(o origin) bool { return len(o.names) == 1 && strings.EqualFold(o.names[0], "name") }

// names reports whether a text says on its last line that a user's name follows: Hello {{.Name}}, but not You are {{.Name}}.
func names(n parse.Node) bool {
	text, ok := n.(*parse.TextNode)
	if !ok {
		return false
	}
	low := strings.ToLower(string(text.Text))
	line := strings.Fields(low[strings.LastIndexByte(low, '\n')+1:])
	return slices.ContainsFunc(line, func(w string) bool {
		w = strings.Trim(w, ".,:;!?\"'()")
		return users[w] || greetings[w]
	})
}

// own counts the tokens of a node's own text. Of two branches the shorter one counts, and a loop may run not at all.
func own(node parse.Node) int {
	sum := func(list *parse.ListNode) int {
		n := 0
		if list != nil {
			for _, node := range list.Nodes {
				n += own(node)
			}
		}
		return n
	}
	switch node := node.(type) {
	case *parse.TextNode:
		return tokens.Count(string(node.Text))
	case *parse.IfNode:
		return min(sum(node.List), sum(node.ElseList))
	case *parse.WithNode:
		return min(sum(node.List), sum(node.ElseList))
	case *parse.RangeNode:
		return min(sum(node.List), sum(node.ElseList))
	}
	return 0
}

// declare notes where variables come from.
func (w *walker) declare(p *parse.PipeNode, value origin) {
	for _, v := range p.Decl {
		w.variables[v.Ident[0]] = value
	}
}

// pipe returns where the value of a pipeline comes from: all names in it, with those of its arguments.
func (w *walker) pipe(p *parse.PipeNode, dot origin) origin {
	var all origin
	if p == nil {
		return all
	}
	for _, c := range p.Cmds {
		length := false
		for _, arg := range c.Args {
			if id, ok := arg.(*parse.IdentifierNode); ok && (len(c.Args) > 1 || len(p.Cmds) > 1) && !isSource(id.Ident) {
				length = length || id.Ident == "len"
				continue // it changes the form of its arguments alone
			}
			o := w.value(arg, dot)
			all = origin{slices.Concat(all.names, o.names), all.element || o.element}
		}
		if length {
			all = all.of("len")
		}
	}
	return all
}

// isSource reports whether a function makes a value that is new each time, whatever its arguments.
func isSource(name string) bool {
	low := strings.ToLower(name)
	return low == "now" || strings.HasPrefix(low, "uuid") || strings.HasPrefix(low, "rand")
}

// value returns where an argument comes from.
func (w *walker) value(n parse.Node, dot origin) origin {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return dot.of(n.Ident...)
	case *parse.VariableNode:
		return w.variables[n.Ident[0]].of(n.Ident[1:]...)
	case *parse.IdentifierNode:
		return origin{names: []string{n.Ident}}
	case *parse.ChainNode:
		return w.value(n.Node, dot).of(n.Field...)
	case *parse.PipeNode:
		return w.pipe(n, dot)
	}
	return origin{}
}
