package ui

import (
	"fmt"

	"github.com/ragpilot/ragpilot/internal/gain"
)

// Measured turns a comparison with held-out requests into a Saving. Without enough of them nothing is measured, and Why
// tells what is missing.
func Measured(f gain.Figure) Saving {
	switch {
	case f.Samples[0] == 0:
		return Saving{Why: "needs held-out sessions to compare with (--hold-out)"}
	case !f.OK:
		return Saving{Why: fmt.Sprintf("needs %d requests in each group; so far %d held out and %d planned", gain.MinSamples, f.Samples[0], f.Samples[1])}
	}
	return Saving{PerRequest: new(f.Saved), Low: new(f.Low), High: new(f.High), Requests: f.Samples[1]}
}

// Priced turns saved tokens into money, at what a million tokens cost that the engine computes rather than takes from
// its cache. A price of 0 is none.
func Priced(tokens Saving, perMillion float64, currency string) Saving {
	if tokens.PerRequest == nil {
		return tokens
	}
	if perMillion <= 0 {
		return Saving{Why: "needs a price for tokens"}
	}
	scaled := func(tokens *float64) *float64 {
		if tokens == nil {
			return nil
		}
		return new(*tokens * perMillion / 1e6)
	}
	return Saving{
		PerRequest: scaled(tokens.PerRequest), Low: scaled(tokens.Low), High: scaled(tokens.High),
		Requests: tokens.Requests, Currency: currency,
	}
}
