package dashboard

import (
	"fmt"

	"github.com/ragpilot/ragpilot/internal/sidecar/savings"
)

// Measured turns a comparison with held-out sessions into a Saving. Without enough of them nothing is measured, and Why
// says what is missing.
func Measured(f savings.Figure) Saving {
	switch {
	case f.Samples[0] == 0:
		return Saving{Why: "needs held-out sessions to compare with (--hold-out)"}
	case !f.OK:
		return Saving{Why: fmt.Sprintf("needs %d sessions in each group; so far %d held out and %d planned", savings.MinSessions, f.Sessions[0], f.Sessions[1])}
	}
	return Saving{PerRequest: new(f.Saved), Low: new(f.Low), High: new(f.High), Requests: f.Samples[1]}
}

// Priced is Measured for money in a currency.
func Priced(f savings.Figure, currency string) *Saving {
	s := Measured(f)
	s.Currency = currency
	return &s
}
