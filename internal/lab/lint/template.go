package lint

import (
	"fmt"
	"os"
)

// template checks a Go template.
func (l *linter) template(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	l.summary.Templates++
	findings, err := Templates(name, string(text))
	if err != nil {
		l.bad(fmt.Errorf("%s: %w", name, err))
		return nil
	}
	for _, f := range findings {
		if f.LostTokens < l.opt.Least {
			continue
		}
		l.summary.Findings++
		l.summary.Lost += f.LostTokens
		if err := l.report(Finding{File: name, Line: f.Line, Cause: f.Cause, Path: f.Expr, Lost: f.LostTokens}); err != nil {
			return err
		}
	}
	return nil
}
