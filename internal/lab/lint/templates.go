package lint

import "github.com/ragpilot/ragpilot/prefixdiff"

// TemplateFinding is an action of a Go template whose value changes from request to request.
type TemplateFinding struct {
	Line       int
	Cause      prefixdiff.Cause
	Expr       string
	LostTokens int
}

// Templates checks a Go template.
func Templates(name, text string) ([]TemplateFinding, error) { return nil, nil }
