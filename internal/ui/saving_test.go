package ui_test

import (
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
		"too few":         {gain.Figure{Saved: 5, Samples: [2]int{70, 1000}, Sessions: [2]int{7, 100}}, "so far 7 held out and 100 planned"},
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
	s := ui.Priced(gain.Figure{Saved: .003, Low: .0015, High: .0045, Samples: [2]int{40, 100}, OK: true}, "EUR")
	if *s.PerRequest != .003 || *s.Low != .0015 || *s.High != .0045 || s.Currency != "EUR" || s.Requests != 100 {
		t.Errorf("%+v", s)
	}
	if s := ui.Priced(gain.Figure{}, "EUR"); s.PerRequest != nil || !strings.Contains(s.Why, "--hold-out") {
		t.Errorf("%+v", s)
	}
}
