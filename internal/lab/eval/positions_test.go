package eval_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
)

// lateReader reads the documents of the last message from the end.
type lateReader struct{ fakeReader }

func (l *lateReader) Generate(ctx context.Context, req engines.Request, maxTokens int) (string, error) {
	last := &req.Messages[len(req.Messages)-1]
	docs := strings.SplitAfter(last.Content, "</doc>\n")
	slices.Reverse(docs[:len(docs)-1])
	req.Messages = slices.Clone(req.Messages)
	req.Messages[len(req.Messages)-1].Content = strings.Join(docs, "")
	return l.fakeReader.Generate(ctx, req, maxTokens)
}

// A profile follows from how a model reads the first and the last place.
func TestPositions(t *testing.T) {
	for name, c := range map[string]struct {
		scorer eval.Scorer
		exact  []float64
		want   profile.Profile
	}{
		"the first two":   {&fakeReader{sight: 2}, []float64{1, 0, 0}, profile.Profile{Name: "positions", Top: "anywhere", Pin: 1}},
		"the last two":    {&lateReader{fakeReader{sight: 2}}, []float64{0, 0, 1}, profile.Profile{Name: "positions", Top: "near"}},
		"all":             {&fakeReader{sight: 5}, []float64{1, 1, 1}, profile.Profile{Name: "positions", Top: "anywhere"}},
		"the first three": {&fakeReader{sight: 3}, []float64{1, 1, 0}, profile.Profile{Name: "positions", Top: "anywhere", Pin: 1}},
	} {
		none := 0.0
		rows := generate(t, eval.Options{Rows: 60, Seed: 4, FollowUps: &none})
		run := &eval.Run{Rows: rows, Arms: append(arms(t, eval.Plain), eval.Positions(3)...), Scorer: c.scorer, MaxTokens: 20}
		outcomes := do(t, run)
		for i, o := range outcomes {
			for k, place := range []int{0, 2, 4} {
				a := o.Arms[1+k]
				if a.Sent[place] != rows[i].GoldRank()-1 || !slices.IsSorted(slices.Delete(slices.Clone(a.Sent), place, place+1)) {
					t.Fatalf("%s, row %s, place %d: sent %v, the answer is at rank %d", name, o.Row, place, a.Sent, o.GoldRank)
				}
			}
		}
		report := judged(t, run, outcomes)
		if p := report.Reading.Profile(); !reflect.DeepEqual(p, c.want) || !slices.Equal(report.Reading.Exact, c.exact) {
			t.Errorf("%s: %+v of %+v", name, p, report.Reading)
		}
		if svg := string(report.Reading.Plot("m")); !strings.Contains(svg, "60 rows") {
			t.Errorf("%s: %s", name, svg)
		}
		if p, ok := report.Choice(); ok {
			t.Errorf("%s: the choice is %+v", name, p)
		}
	}
}

// Rows that do not say where the answer is stay as retrieved.
func TestPositionsWithoutGold(t *testing.T) {
	rows := generate(t, eval.Options{Rows: 40, K: 2})
	for i := range rows {
		rows[i].Gold = nil
	}
	run := &eval.Run{Rows: rows, Arms: append(arms(t, eval.Plain), eval.Positions(2)...), Scorer: &fakeReader{sight: 2}, MaxTokens: 20}
	for _, o := range do(t, run) {
		for _, a := range o.Arms {
			if !slices.IsSorted(a.Sent) {
				t.Fatalf("row %s, arm %s: %v", o.Row, a.Arm, a.Sent)
			}
		}
	}
}
