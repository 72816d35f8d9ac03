// Package gotemplate reads Go templates of prompts, in files of their own and in the strings of Go programs, and finds the action that
// wrote a place of a prompt.
package gotemplate

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"text/template/parse"
)

// File is a parsed template, with those that are defined in it.
type File struct {
	Name  string
	Trees []*parse.Tree // by name
	lines []segment
}

// segment is a piece of a template's text.
type segment struct {
	from  int // byte in the template
	line  int // in the file
	fixed bool
	text  string
}

// Parse reads a template. Functions that are not known are no errors.
func Parse(name, text string) (*File, error) {
	return parseAt(name, text, []segment{{line: 1, text: text}})
}

func parseAt(name, text string, lines []segment) (*File, error) {
	t := parse.New(name)
	t.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := t.Parse(text, "", "", trees); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: ")) // what follows is name:line
	}
	f := &File{Name: name, lines: lines}
	for _, key := range slices.Sorted(maps.Keys(trees)) {
		f.Trees = append(f.Trees, trees[key])
	}
	return f, nil
}

// Line returns the line of the file, from 1, in which a node stands.
func (f *File) Line(n parse.Node) int {
	at := int(n.Position())
	s := f.lines[0]
	for _, other := range f.lines {
		if other.from <= at {
			s = other
		}
	}
	if s.fixed {
		return s.line
	}
	return s.line + strings.Count(s.text[:min(at-s.from, len(s.text))], "\n")
}

// Source returns what opens a node, as it is written in templates but for white space.
func Source(n parse.Node) string {
	switch n := n.(type) {
	case *parse.IfNode:
		return "{{if " + n.Pipe.String() + "}}"
	case *parse.WithNode:
		return "{{with " + n.Pipe.String() + "}}"
	case *parse.RangeNode:
		return "{{range " + n.Pipe.String() + "}}"
	}
	return n.String()
}
