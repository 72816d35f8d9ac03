package ui_test

import (
	"math"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/gain"
	"github.com/ragpilot/ragpilot/internal/ui"
)

func TestMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		figure gain.Figure
		why    string
	}{
		"nobody held out": {gain.Figure{Saved: 5, Samples: [2]int{0, 100}}, "--hold-out"},
		"too few":         {gain.Figure{Saved: 5, Samples: [2]int{7, 100}}, "so far 7 held out and 100 planned"},
	} {
		t.Run(name, func(t *testing.T) {
			if s := ui.Measured(c.figure); s.PerRequest != nil || s.Low != nil || !strings.Contains(s.Why, c.why) {
				t.Errorf("%+v", s)
			}
		})
	}
	s := ui.Measured(gain.Figure{Saved: 5, Low: -1, High: 11, Samples: [2]int{40, 100}, OK: true})
	if *s.PerRequest != 5 || *s.Low != -1 || *s.High != 11 || s.Requests != 100 || s.Why != "" {
		t.Errorf("%+v", s)
	}
}

func TestPriced(t *testing.T) {
	tokens := ui.Measured(gain.Figure{Saved: 1000, Low: 500, High: 1500, Samples: [2]int{40, 100}, OK: true})
	s := ui.Priced(tokens, 3, "EUR")
	if near := func(p *float64, want float64) bool { return math.Abs(*p-want) < 1e-12 }; !near(s.PerRequest, .003) || !near(s.Low, .0015) || !near(s.High, .0045) {
		t.Errorf("%v", s)
	}
	if s.Currency != "EUR" || s.Requests != 100 {
		t.Errorf("%+v", s)
	}
	if s := ui.Priced(tokens, 0, "EUR"); s.PerRequest != nil || s.Why != "needs a price for tokens" {
		t.Errorf("%+v", s)
	}
	if s := ui.Priced(ui.Measured(gain.Figure{}), 3, "EUR"); s.PerRequest != nil || !strings.Contains(s.Why, "--hold-out") {
		t.Errorf("%+v", s)
	}
	if s := ui.Priced(ui.Saving{PerRequest: new(1.0)}, 3, "EUR"); s.PerRequest == nil || s.Low != nil {
		t.Errorf("%+v", s)
	}
}
