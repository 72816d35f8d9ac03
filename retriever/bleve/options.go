package bleve

import (
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
	// one Include and no Exclude matches. Empty Include: *.md, *.markdown and *.txt.
	Include, Exclude []string
	// TargetBytes is the size up to which paragraphs are packed into one block, its heading line included.
	// 0: [DefaultTargetBytes]; otherwise at least 64.
	TargetBytes int
	// MaxBytes bounds a block's body: a sentence or fenced code block that is larger is cut.
	// 0: twice TargetBytes; otherwise at least TargetBytes.
	MaxBytes int
	// MaxFileBytes is the size above which a file is skipped, see [Index.Skipped]. 0: [DefaultMaxFileBytes].
	MaxFileBytes int64
	// Analyzer names how text becomes search terms: "en", "standard" (no stemming), or any other analyzer of
	// bleve whose package the program imports, for example _ "github.com/blevesearch/bleve/v2/analysis/lang/de".
	// Empty: [DefaultAnalyzer].
	Analyzer string
}

// withDefaults returns a checked copy of o with all fields set.
func (o Options) withDefaults() (Options, error) {
	if len(o.Include) == 0 {
		o.Include = []string{"*.md", "*.markdown", "*.txt"}
	}
	if o.TargetBytes == 0 {
		o.TargetBytes = DefaultTargetBytes
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 2 * o.TargetBytes
	}
	if o.MaxFileBytes == 0 {
		o.MaxFileBytes = DefaultMaxFileBytes
	}
	if o.Analyzer == "" {
		o.Analyzer = DefaultAnalyzer
	}
	switch {
	case o.TargetBytes < chunk.MinTarget:
		return o, fmt.Errorf("Options.TargetBytes = %d, want at least %d", o.TargetBytes, chunk.MinTarget)
	case o.MaxBytes < o.TargetBytes:
		return o, fmt.Errorf("Options.MaxBytes = %d, want at least TargetBytes = %d", o.MaxBytes, o.TargetBytes)
	case o.MaxFileBytes < 0:
		return o, fmt.Errorf("Options.MaxFileBytes = %d, want at least 0", o.MaxFileBytes)
	}
	var err error
	if o.Include, err = patterns("Options.Include", o.Include); err != nil {
		return o, err
	}
	o.Exclude, err = patterns("Options.Exclude", o.Exclude)
	return o, err
}

// patterns returns the patterns in lower case, or an error that names the field and the bad one.
func patterns(field string, in []string) ([]string, error) {
	out := make([]string, len(in))
	for i, p := range in {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return nil, fmt.Errorf("%s[%d] = %q: %w", field, i, p, path.ErrBadPattern)
		}
		out[i] = strings.ToLower(p)
	}
	return out, nil
}

// wants reports whether the file at the slash-separated path name is to be read.
func (o Options) wants(name string) bool {
	return matches(o.Include, name) && !matches(o.Exclude, name)
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
