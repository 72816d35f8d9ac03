package lint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/internal/base/validjson"
	"github.com/ragpilot/ragpilot/prefixdiff"
)

// Options are those of a check.
type Options struct {
	BlockSize int   // tokens of a block of the engine's cache; 0: not known
	KeepTexts bool  // findings quote the texts
	MaxBytes  int64 // memory for hashes; 0: 384 MiB
	Least     int   // findings that lose fewer tokens are left out
}

// defaultBytes is the memory for hashes: enough for some 50,000 requests of 8,000 tokens that have nothing in common.
const defaultBytes = 384 << 20

// Finding is what was found in a file.
type Finding struct {
	File        string           `json:"file,omitempty"`
	Line        int              `json:"line"`
	AgainstFile string           `json:"against_file,omitempty"` // if it is another one
	Against     int              `json:"against,omitempty"`      // its line; 0: a template
	Cause       prefixdiff.Cause `json:"cause"`
	Path        string           `json:"path"`
	Token       int              `json:"token"`
	Lost        int              `json:"lost_tokens"`
	Was         string           `json:"was,omitempty"`
	Is          string           `json:"is,omitempty"`
	Cost        float64          `json:"cost,omitempty"`
	Seconds     float64          `json:"seconds,omitempty"`
}

// Summary counts what was read.
type Summary struct {
	Requests, Templates, Findings, Lost int
	Bad                                 []error // lines and files that could not be read: the first ones
	BadCount                            int
}

// linter is a check under way.
type linter struct {
	ctx     context.Context
	opt     Options
	summary Summary
	report  func(Finding) error
}

// Run checks files and folders, and reports each finding in the order of the requests. A file whose name ends in .jsonl, .ndjson,
// .json, .log or none of the endings below has a request body in each line; one of .tmpl, .gotmpl, .tpl or .gohtml is a Go template;
// in folders, files of .txt, .md, .prompt and .golden are prompts. A .json file that is one value is one request, on however many lines,
// and counts as a prompt. The name "-" is in. Lines that are no requests are in the summary; an error is one of reading, of ctx
// or of report.
func Run(ctx context.Context, names []string, in io.Reader, opt Options, report func(Finding) error) (Summary, error) {
	if opt.MaxBytes == 0 {
		opt.MaxBytes = defaultBytes
	}
	l := &linter{ctx: ctx, opt: opt, report: report}
	for _, name := range names {
		if err := l.path(name, in); err != nil {
			return l.summary, err
		}
	}
	return l.summary, nil
}

func (l *linter) path(name string, in io.Reader) error {
	if name == "-" {
		return l.stream(in)
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return l.folder(name)
	case !info.Mode().IsRegular(): // such as a pipe: it can be read once only
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		return l.stream(f)
	case isTemplate(name):
		return l.template(name)
	}
	if whole, err := isValue(name); err != nil || whole {
		return errors.Join(err, l.prompts([]string{name}, false))
	}
	return l.file(name)
}

func isTemplate(name string) bool {
	return slices.Contains([]string{".tmpl", ".gotmpl", ".tpl", ".gohtml"}, strings.ToLower(filepath.Ext(name)))
}

func isPrompt(name string) bool {
	return slices.Contains([]string{".txt", ".md", ".prompt", ".golden"}, strings.ToLower(filepath.Ext(name)))
}

func isRequests(name string) bool {
	return slices.Contains([]string{".jsonl", ".ndjson", ".json"}, strings.ToLower(filepath.Ext(name)))
}

func isJSON(name string) bool { return strings.EqualFold(filepath.Ext(name), ".json") }

// isValue reports whether a .json file is one value, and not one in each line.
func isValue(name string) (bool, error) {
	if !isJSON(name) {
		return false, nil
	}
	info, err := os.Stat(name)
	if err != nil || info.Size() > maxPrompt {
		return false, err
	}
	text, err := os.ReadFile(name)
	return validjson.Valid(text), err
}

// folder checks the templates, requests and prompts of a folder. Prompts are compared with each other.
func (l *linter) folder(dir string) error {
	var prompts []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		case isTemplate(path):
			return l.template(path)
		case isPrompt(path):
			prompts = append(prompts, path)
		case isRequests(path):
			whole, err := isValue(path)
			if err != nil {
				return err
			}
			if !whole {
				return l.file(path)
			}
			prompts = append(prompts, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return l.prompts(prompts, true)
}

// maxPrompt is the largest golden prompt that is read, in bytes.
const maxPrompt = 16 << 20

// prompts compares golden prompts, each a file: a text, or a request body. In a folder, JSON that is no request is passed over.
func (l *linter) prompts(names []string, folder bool) error {
	var read []string // by number
	x, err := prefixdiff.New(prefixdiff.Config{MaxBytes: l.opt.MaxBytes, KeepTexts: true})
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if info.Size() > maxPrompt {
			l.bad(fmt.Errorf("%s: %d bytes: want at most %d", name, info.Size(), maxPrompt))
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		p, err := prefixdiff.Parse(text)
		switch {
		case folder && errors.Is(err, prefixdiff.ErrUnknown) && isJSON(name):
			continue
		case err != nil && isJSON(name):
			l.bad(fmt.Errorf("%s: %w", name, err))
			continue
		case err != nil:
			p = prefixdiff.FromText(string(text))
		}
		l.summary.Requests++
		read = append(read, name)
		r := l.prepare(x, p)
		r.Insert()
		f, ok := r.Explain()
		if !ok {
			continue
		}
		line := 1
		if f.Part == prefixdiff.Text && err != nil {
			line += strings.Count(string(text[:min(f.Offset, len(text))]), "\n")
		}
		if err := l.found(f, Finding{File: name, Line: line, AgainstFile: read[f.Against], Against: 1}); err != nil {
			return err
		}
	}
	return nil
}

func (l *linter) prepare(x *prefixdiff.Index, p prefixdiff.Prompt) *prefixdiff.Request {
	r := x.Prepare(p)
	r.See(prefixdiff.Seen{BlockSize: l.opt.BlockSize})
	return r
}

// found reports a finding whose place is known.
func (l *linter) found(f prefixdiff.Finding, at Finding) error {
	if f.LostTokens < l.opt.Least {
		return nil
	}
	at.Cause, at.Path, at.Token, at.Lost = f.Cause, f.Path, f.Token, f.LostTokens
	if l.opt.KeepTexts {
		at.Was, at.Is = f.Was, f.Is
	}
	l.summary.Findings++
	l.summary.Lost += f.LostTokens
	return l.report(at)
}

// maxBad bounds the errors that are kept.
const maxBad = 10

func (l *linter) bad(err error) {
	l.summary.BadCount++
	if len(l.summary.Bad) < maxBad {
		l.summary.Bad = append(l.summary.Bad, err)
	}
}

// ErrEmpty is reported for a file without a request.
var ErrEmpty = errors.New("no requests")
