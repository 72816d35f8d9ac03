package membench

import (
	"fmt"

	"github.com/ragpilot/ragpilot/internal/lab/plot"
)

// Chart draws quality against computed prompt tokens as SVG, one mark for each arm and cache. Quality is the share of right
// answers if a model has answered, and otherwise that of the needed facts that stood in the prompts.
func (p *Prompted) Chart() []byte {
	c := plot.Chart{
		Title: "Agent memory: quality against computed prompt tokens", X: "computed prompt tokens a turn (left is better)",
		Note: fmt.Sprintf("embedder %s, k = %d; full: a cache without a limit, hollow: one of %d tokens", p.Embedder, p.K, p.Cache),
		Y:    "turns with the needed fact in the prompt, %", Top: 100,
	}
	if p.Model != "" {
		c.Note += "; answers of " + p.Model
		c.Y = "right answers, %"
	}
	for _, a := range p.Arms {
		quality := 100 * a.Held
		if p.Model != "" {
			quality = 100 * a.Right
		}
		c.Add(a.Name, plot.Mark{X: a.Computed, Y: quality})
		c.Add(a.Name, plot.Mark{X: a.ComputedSmall, Y: quality, Hollow: true})
	}
	return c.SVG()
}
