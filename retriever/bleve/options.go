package bleve

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/ragpilot/ragpilot/retriever/bleve/internal/chunk"
)

// Defaults of [Options].
const (
	// DefaultTargetBytes is about 200 tokens of prose: short enough that a block is about one thing.
	DefaultTargetBytes = 800
	// DefaultMaxFileBytes is far above any text written by hand; a larger file is a dump or a log.
	DefaultMaxFileBytes = 8 << 20
	// DefaultAnalyzer lower-cases, drops English stop words and stems English words. Words of other languages
	// are found by their exact form.
	DefaultAnalyzer = "en"
)

// Options configure an [Index]. The zero value is the recommended setup, except that [Open] needs Dir.
type Options struct {
	// Dir is the folder that [Open] reads. [New] has its file system instead and refuses a Dir.
	Dir string
	// Include and Exclude are patterns in the syntax of [path.Match], compared without regard to letter case:
	// with the whole relative path if the pattern holds a slash, else with the file's name. A file is read if
	// one Include and no Exclude matches. Empty Include: *.md, *.markdown and *.txt; [Formats] has all that can
	// be read. A file whose name ends in none of them is read as plain text.
	Include, Exclude []string
	// TargetBytes is the size up to which paragraphs are packed into one block, its heading line included.
	// 0: [DefaultTargetBytes]; otherwise at least 64.
	TargetBytes int
	// MaxBytes bounds a block's body: a sentence or fenced code block that is larger is cut.
	// 0: twice TargetBytes; otherwise at least TargetBytes.
	MaxBytes int
	// MaxFileBytes is the size above which a file is skipped, see [Index.Skipped]. 0: [DefaultMaxFileBytes].
	MaxFileBytes int64
	// Analyzer names how text becomes search terms: "en", "standard" (no stemming), one of the languages of
	// retriever/bleve/languages if the program imports it, or any other analyzer of bleve whose package it imports.
	// Empty: [DefaultAnalyzer].
	Analyzer string
	// Analyzers are for files of other languages; the first whose pattern fits a file counts. A question is asked
	// of each, cut into words as the language does it.
	Analyzers []FileAnalyzer
	// IndexDir is the folder that keeps the index, so that the next [Open] or [New] indexes only the files that have
	// changed since. It is made if it is missing, belongs to the index alone, and can be in use by one process at a
	// time. With other options for cutting and analyzing, the index in it is built anew. Empty: the index is kept in
	// memory.
	IndexDir string
	// Progress, if not nil, is called by the goroutine that indexes, before the first file and after each. [Bar] makes
	// one that draws.
	Progress func(Progress)
}

// FileAnalyzer names the analyzer of some files.
type FileAnalyzer struct {
	Pattern  string // as in Options.Include
	Analyzer string // as Options.Analyzer
}

// Formats returns patterns, for Options.Include, of all files that can be read: Markdown, plain text, HTML and PDF.
func Formats() []string {
	return []string{"*.md", "*.markdown", "*.txt", "*.html", "*.htm", "*.pdf"}
}

// withDefaults returns a checked copy of o with all fields set.
func (o Options) withDefaults() (Options, error) {
	if len(o.Include) == 0 {
		o.Include = []string{"*.md", "*.markdown", "*.txt"}
	}
	o.TargetBytes = cmp.Or(o.TargetBytes, DefaultTargetBytes)
	o.MaxBytes = cmp.Or(o.MaxBytes, 2*o.TargetBytes)
	o.MaxFileBytes = cmp.Or(o.MaxFileBytes, DefaultMaxFileBytes)
	o.Analyzer = cmp.Or(o.Analyzer, DefaultAnalyzer)
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	switch {
	case o.TargetBytes < chunk.MinTarget:
		return o, fmt.Errorf("Options.TargetBytes = %d, want at least %d", o.TargetBytes, chunk.MinTarget)
	case o.MaxBytes < o.TargetBytes:
		return o, fmt.Errorf("Options.MaxBytes = %d, want at least TargetBytes = %d", o.MaxBytes, o.TargetBytes)
	case o.MaxFileBytes < 0:
		return o, fmt.Errorf("Options.MaxFileBytes = %d, want at least 0", o.MaxFileBytes)
	}
	return o.withPatterns()
}

// withPatterns checks the patterns and brings them to lower case.
func (o Options) withPatterns() (Options, error) {
	var err error
	if o.Include, err = patterns("Options.Include", o.Include); err != nil {
		return o, err
	}
	if o.Exclude, err = patterns("Options.Exclude", o.Exclude); err != nil {
		return o, err
	}
	rules := append([]FileAnalyzer{}, o.Analyzers...) // never nil: it is part of the fingerprint
	for i, r := range rules {
		if rules[i].Pattern, err = pattern(fmt.Sprintf("Options.Analyzers[%d].Pattern", i), r.Pattern); err != nil {
			return o, err
		}
	}
	o.Analyzers = rules
	return o, nil
}

// patterns returns the patterns in lower case, or an error that names the field and the bad one.
func patterns(field string, in []string) ([]string, error) {
	out := make([]string, len(in))
	for i, p := range in {
		var err error
		if out[i], err = pattern(fmt.Sprintf("%s[%d]", field, i), p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func pattern(field, p string) (string, error) {
	if _, err := path.Match(p, ""); err != nil || p == "" {
		return "", fmt.Errorf("%s = %q: %w", field, p, path.ErrBadPattern)
	}
	return strings.ToLower(p), nil
}

// wants reports whether the file at the slash-separated path name is to be read.
func (o Options) wants(name string) bool {
	return matches(o.Include, name) && !matches(o.Exclude, name)
}

// analyzerOf returns the name of the analyzer of a file.
func (o Options) analyzerOf(name string) string {
	for _, r := range o.Analyzers {
		if matches([]string{r.Pattern}, name) {
			return r.Analyzer
		}
	}
	return o.Analyzer
}

func matches(patterns []string, name string) bool {
	name = strings.ToLower(name)
	for _, p := range patterns {
		subject := name
		if !strings.Contains(p, "/") {
			subject = path.Base(name)
		}
		if ok, _ := path.Match(p, subject); ok { // the pattern was checked by withDefaults
			return true
		}
	}
	return false
}
