package compress

import "github.com/ragpilot/ragpilot/internal/nn/gpu"

// Pages returns the part's pages. They are the part's.
func (p *Part) Pages() []gpu.Page { return p.pages }
