package ragpilottest

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/internal/prompt/gotemplate"
)

// Option changes what a recorder answers, what counts, or what a failure says.
type Option func(*config) error

type config struct {
	script func(Request) Answer
	all    bool
	files  []*gotemplate.File
}

func (c *config) answer(r Request) Answer {
	if c.script == nil {
		return Answer{Text: DefaultAnswer}
	}
	return c.script(r)
}

// Answers gives the requests these answers in turn, and then again from the first one, so that an agent can be run twice.
func Answers(answers ...Answer) Option {
	return func(c *config) error {
		if len(answers) == 0 {
			return fmt.Errorf("Answers: no answers")
		}
		var next atomic.Int64
		c.script = func(Request) Answer { return answers[int(next.Add(1)-1)%len(answers)] }
		return nil
	}
}

// AnswerFunc answers each request with what f returns. Requests that arrive at the same time call it at the same time.
func AnswerFunc(f func(Request) Answer) Option {
	return func(c *config) error {
		c.script = f
		return nil
	}
}

// OfAll makes AssertReuse check [Report.ShareOfAll].
func OfAll() Option {
	return func(c *config) error {
		c.all = true
		return nil
	}
}

// templateNames are the files that Templates reads without patterns.
var templateNames = []string{"*.tmpl", "*.gotmpl", "*.tpl", "*.go"}

// Templates names the Go templates of the prompts, so that a failure can say which action of which line changed. Patterns are those
// of [path.Match], for the name of a file or for its path; without them all files count that end in .tmpl, .gotmpl, .tpl or .go, in all
// folders. Of a Go program its strings are read that have {{.
func Templates(fsys fs.FS, patterns ...string) Option {
	return func(c *config) error {
		if len(patterns) == 0 {
			patterns = templateNames
		}
		before := len(c.files)
		err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !matches(patterns, name) {
				return err
			}
			text, err := fs.ReadFile(fsys, name)
			if err != nil {
				return err
			}
			if strings.HasSuffix(name, ".go") {
				files, err := gotemplate.InGo(name, string(text))
				c.files = append(c.files, files...)
				return err
			}
			f, err := gotemplate.Parse(name, string(text))
			c.files = append(c.files, f)
			return err
		})
		if err != nil {
			return fmt.Errorf("Templates: %w", err)
		}
		for _, p := range patterns {
			if _, err := path.Match(p, ""); err != nil {
				return fmt.Errorf("Templates: pattern %q: %w", p, err)
			}
		}
		if len(c.files) == before {
			return fmt.Errorf("Templates: no template matches %s", strings.Join(patterns, ", "))
		}
		return nil
	}
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		whole, _ := path.Match(p, name) // a pattern that is none is reported at the end
		base, _ := path.Match(p, path.Base(name))
		return whole || base
	})
}

// TemplateText names a Go template that stands in no file, such as that of a langchaingo prompt.
func TemplateText(name, text string) Option {
	return func(c *config) error {
		f, err := gotemplate.Parse(name, text)
		if err != nil {
			return fmt.Errorf("TemplateText: %w", err)
		}
		c.files = append(c.files, f)
		return nil
	}
}
