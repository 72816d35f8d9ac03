package gotemplate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// InGo returns the templates in the strings of a Go program, also those that are added up of several strings. Lines are those of the
// program. A string that has {{ and is no template is left out.
func InGo(name, source string) ([]*File, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []*File
	ast.Inspect(file, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.BasicLit, *ast.BinaryExpr:
		default:
			return true
		}
		text, lines, ok := constant(set, n.(ast.Expr), "", nil)
		if !ok {
			return true
		}
		if strings.Contains(text, "{{") {
			if f, err := parseAt(name, text, lines); err == nil {
				out = append(out, f)
			}
		}
		return false
	})
	return out, nil
}

// constant adds the text of an expression of strings.
func constant(set *token.FileSet, e ast.Expr, text string, lines []segment) (string, []segment, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return constant(set, e.X, text, lines)
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", nil, false
		}
		text, lines, ok := constant(set, e.X, text, lines)
		if !ok {
			return "", nil, false
		}
		return constant(set, e.Y, text, lines)
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", nil, false
		}
		value, err := strconv.Unquote(e.Value)
		if err != nil {
			return "", nil, false
		}
		s := segment{from: len(text), line: set.Position(e.Pos()).Line, fixed: e.Value[0] == '"', text: value}
		return text + value, append(lines, s), true
	}
	return "", nil, false
}
