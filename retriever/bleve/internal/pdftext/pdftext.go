// Package pdftext reads the text of PDF files, page by page.
//
// A PDF says where glyphs stand, not what the text is. Lines and paragraphs are made from the positions: glyphs of one
// height are a line, a gap between them is a space, and a line that is further down than usual begins a paragraph.
// Columns that the file draws one after the other come out one after the other; in tables cells are separated by spaces.
//
// The library that parses the file panics on many damaged ones, and does what a hostile one wants. So the bytes that
// it may read, the operators and the text are bounded, numbers that would make it take memory are checked before, and a
// panic becomes an error.
package pdftext

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ledongthuc/pdf"
)

// Errors of [Pages].
var (
	// ErrBad: the file is damaged, needs a password, or is of a kind that cannot be read.
	ErrBad = errors.New("not a readable PDF")
	// ErrNoText: the pages hold no text; scanned pages are pictures.
	ErrNoText = errors.New("PDF without text")
)

const (
	// maxPages bounds the pages that are read.
	maxPages = 20_000
	// maxTree bounds the depth of the tree of pages.
	maxTree = 50
	// maxOperators bounds the drawing operators of a file; a page of dense text has a few thousand.
	maxOperators = 20_000_000
	// maxText bounds the bytes of text of a file.
	maxText = 64 << 20
	// maxStream bounds the bytes of a page's content once decompressed.
	maxStream = 64 << 20
)

// Pages returns the text of each page, "" for one without. Paragraphs are separated by empty lines. Errors wrap [ErrBad]
// or [ErrNoText].
func Pages(raw []byte) (pages []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			pages, err = nil, fmt.Errorf("%w: %v", ErrBad, r)
		}
	}()
	if err := precheck(raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBad, err)
	}
	file := &bounded{Reader: bytes.NewReader(raw), left: 256*int64(len(raw)) + 16<<20}
	r, err := pdf.NewReader(file, int64(len(raw)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBad, err)
	}
	all := leaves(nil, r.Trailer().Key("Root").Key("Pages"), 0)
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: no pages", ErrBad)
	}
	limits := &budget{operators: maxOperators, text: maxText}
	some := false
	for _, p := range all {
		text := page(p, limits)
		some = some || text != ""
		pages = append(pages, text)
	}
	if !some {
		return nil, ErrNoText
	}
	return pages, nil
}

// leaves appends the pages of a tree. The library's own way to a page walks past all pages before it.
func leaves(out []pdf.Page, node pdf.Value, depth int) []pdf.Page {
	if depth > maxTree {
		panic("the tree of pages is too deep")
	}
	kids := node.Key("Kids")
	for i := range kids.Len() {
		kid := kids.Index(i)
		switch kid.Key("Type").Name() {
		case "Pages":
			out = leaves(out, kid, depth+1)
		case "Page":
			out = append(out, pdf.Page{V: kid})
		}
		if len(out) > maxPages {
			panic("too many pages")
		}
	}
	return out
}

// budget is what is left of a file's bounds. Overdrawn, it panics: that is the only way out of the library's calls.
type budget struct{ operators, text int }

func (b *budget) operator() {
	if b.operators--; b.operators < 0 {
		panic("too many drawing operators")
	}
}

func (b *budget) write(n int) {
	if b.text -= n; b.text < 0 {
		panic("too much text")
	}
}

// page returns the text of one page.
func page(p pdf.Page, limits *budget) string {
	if p.V.IsNull() {
		return ""
	}
	w := &words{page: p, limits: limits, fonts: map[string]*font{}, spaceBelow: 0}
	w.state.reset()
	for _, stream := range streams(p.V.Key("Contents")) {
		checkStream(stream)
		pdf.Interpret(stream, w.do)
	}
	return strings.TrimSpace(w.text())
}

// streams returns the contents of a page: one stream, or an array of them.
func streams(contents pdf.Value) []pdf.Value {
	switch contents.Kind() {
	case pdf.Stream:
		return []pdf.Value{contents}
	case pdf.Array:
		var out []pdf.Value
		for i := range contents.Len() {
			if s := contents.Index(i); s.Kind() == pdf.Stream {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}
