package dashboard_test

import (
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/savings"
)

func TestMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		figure savings.Figure
		why    string
	}{
		"nobody held out": {savings.Figure{Saved: 5, Samples: [2]int{0, 100}}, "--hold-out"},
		"too few":         {savings.Figure{Saved: 5, Samples: [2]int{70, 1000}, Sessions: [2]int{7, 100}}, "so far 7 held out and 100 planned"},
	} {
		t.Run(name, func(t *testing.T) {
			if s := dashboard.Measured(c.figure); s.PerRequest != nil || s.Low != nil || !strings.Contains(s.Why, c.why) {
				t.Errorf("%+v", s)
			}
		})
	}
	s := dashboard.Measured(savings.Figure{Saved: 5, Low: -1, High: 11, Samples: [2]int{40, 100}, OK: true})
	if *s.PerRequest != 5 || *s.Low != -1 || *s.High != 11 || s.Requests != 100 || s.Why != "" {
		t.Errorf("%+v", s)
	}
}

func TestPriced(t *testing.T) {
	s := dashboard.Priced(savings.Figure{Saved: .003, Low: .0015, High: .0045, Samples: [2]int{40, 100}, OK: true}, "EUR")
	if *s.PerRequest != .003 || *s.Low != .0015 || *s.High != .0045 || s.Currency != "EUR" || s.Requests != 100 {
		t.Errorf("%+v", s)
	}
	if s := dashboard.Priced(savings.Figure{}, "EUR"); s.PerRequest != nil || !strings.Contains(s.Why, "--hold-out") {
		t.Errorf("%+v", s)
	}
}
