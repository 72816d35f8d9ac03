package eval_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// planted makes outcomes of a plain and another arm: of all rows the share gain is right in the other arm only, and the share
// loss in plain only. Every fifth row is the second turn of a conversation.
func planted(r *rand.Rand, rows int, gain, loss float64) []eval.Outcome {
	out := make([]eval.Outcome, rows)
	for i := range out {
		o := eval.Outcome{Row: fmt.Sprint(i), Turn: 1, Arms: []eval.Answer{{Arm: eval.Plain}, {Arm: "other"}}}
		if i%5 >= 3 {
			o.Session, o.Turn = fmt.Sprint("s", i/5), i%5-2
		}
		plain, other := true, true
		switch x := r.Float64(); {
		case x < gain:
			plain = false
		case x < gain+loss:
			other = false
		case x < 0.4:
			plain, other = false, false
		}
		o.Arms[0].Exact, o.Arms[1].Exact = plain, other
		out[i] = o
	}
	return out
}

var twoArms = eval.Header{Arms: []eval.Arm{{Name: eval.Plain}, {Name: "other"}}}

// verdicts counts them over many runs with 2,000 rows and a margin of 2 points.
func verdicts(t *testing.T, runs int, gain, loss float64) map[eval.Verdict]float64 {
	t.Helper()
	testkit.NotUnderRace(t)
	r := rand.New(rand.NewPCG(uint64(1000*gain), uint64(1000*loss)))
	share := map[eval.Verdict]float64{}
	for run := range runs {
		report, err := eval.Judge(twoArms, planted(r, 2000, gain, loss),
			eval.Settings{Margin: 0.02, NLLMargin: 0.02, Resamples: 500, Seed: uint64(run)})
		if err != nil {
			t.Fatal(err)
		}
		share[report.Arms[1].Verdict] += 1 / float64(runs)
	}
	return share
}

// TestVerdictErrorRates: over many runs with known truth, the verdict is wrong no more often than it claims, and right as often
// as the power calculation promises. One row in ten is right in one arm only.
func TestVerdictErrorRates(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s")
	}
	const runs, discordance = 300, 0.1
	type claim struct {
		verdict   eval.Verdict
		low, high float64 // of its share
	}
	for _, c := range []struct {
		difference float64
		claims     []claim
	}{
		{-0.03, []claim{{eval.NotInferior, 0, 0.005}}},
		{-0.02, []claim{{eval.NotInferior, 0, 0.05}, {eval.Inferior, 0, 0.05}}}, // at the margin itself: 2.5 % each
		{0, []claim{{eval.NotInferior, promised(t, 0, discordance) - 0.07, promised(t, 0, discordance) + 0.07}, {eval.Inferior, 0, 0}}},
		{0.03, []claim{{eval.NotInferior, 0.99, 1}}},
		{-0.05, []claim{{eval.Inferior, promised(t, 0.01, discordance) - 0.05, 1}}}, // as far below the margin as +0.01 is above
	} {
		share := verdicts(t, runs, (discordance+c.difference)/2, (discordance-c.difference)/2)
		t.Logf("true difference %+.2f: %v", c.difference, share)
		for _, x := range c.claims {
			if got := share[x.verdict]; got < x.low-1e-9 || got > x.high+1e-9 {
				t.Errorf("true difference %+.2f: %q in %.3f of the runs, want %.3f to %.3f (%v)", c.difference, x.verdict, got, x.low, x.high, share)
			}
		}
	}
}

func promised(t *testing.T, difference, discordance float64) float64 {
	t.Helper()
	return testkit.Must(eval.Power{Discordance: discordance, Difference: difference, Margin: 0.02, Alpha: 0.025}.Of(2000))(t)
}

// TestVerdictLikelihood: the same for a rise of the mean NLL, with a margin of 0.02.
func TestVerdictLikelihood(t *testing.T) {
	testkit.NotUnderRace(t)
	r := rand.New(rand.NewPCG(4, 4))
	for _, c := range []struct {
		rise      float64
		want      eval.Verdict
		low, high float64
	}{
		{0.03, eval.NotInferior, 0, 0.01},
		{0.02, eval.NotInferior, 0, 0.05},
		{0, eval.NotInferior, 0.9, 1.01},
		{0.04, eval.Inferior, 0.9, 1.01},
		{-0.03, eval.NotInferior, 0.99, 1.01},
	} {
		got := 0.0
		const runs = 200
		for run := range runs {
			outcomes := planted(r, 1000, 0, 0)
			for i := range outcomes {
				plain := r.ExpFloat64()
				other := plain + c.rise + 0.18*r.NormFloat64() // standard error 0.0057
				outcomes[i].Arms[0].NLL, outcomes[i].Arms[1].NLL = &plain, &other
			}
			report, err := eval.Judge(twoArms, outcomes, eval.Settings{Margin: 0.02, NLLMargin: 0.02, Resamples: 500, Seed: uint64(run)})
			if err != nil {
				t.Fatal(err)
			}
			if report.Arms[1].NLLDiff.Verdict == c.want {
				got += 1.0 / runs
			}
		}
		if got < c.low || got > c.high {
			t.Errorf("a rise of %+.2f: %q in %.3f of the runs, want %.3f to %.3f", c.rise, c.want, got, c.low, c.high)
		}
	}
}

// TestVerdictFewRows: agreement on a few rows proves nothing.
func TestVerdictFewRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for rows, want := range map[int]eval.Verdict{5: eval.Undecided, 100: eval.Undecided, 180: eval.Undecided, 200: eval.NotInferior} {
		report, err := eval.Judge(twoArms, planted(r, rows, 0, 0), eval.Settings{Margin: 0.02, NLLMargin: 0.02, Resamples: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if got := report.Arms[1].Verdict; got != want {
			t.Errorf("no difference in %d rows: %q, want %q", rows, got, want)
		}
	}
	zero := 0.0
	one := planted(r, 2000, 0, 0)
	for i := range one {
		one[i].Session = "s"
	}
	report, err := eval.Judge(twoArms, one, eval.DefaultSettings())
	if err != nil || report.Arms[1].Verdict != eval.Undecided {
		t.Errorf("2,000 equal rows of one conversation: %q (%v)", report.Arms[1].Verdict, err)
	}
	few := planted(r, 40, 0, 0)
	for i := range few {
		few[i].Session = "s" // one conversation
		few[i].Arms[0].NLL, few[i].Arms[1].NLL = &zero, &zero
	}
	report, err = eval.Judge(twoArms, few, eval.DefaultSettings())
	if err != nil || report.Arms[1].NLLDiff.Verdict != eval.Undecided {
		t.Errorf("likelihoods of one conversation: %+v (%v)", report.Arms[1].NLLDiff, err)
	}
}

// TestVerdictHopeless: where the model answers hardly anything, no layout can be shown to be as good, and none is chosen.
func TestVerdictHopeless(t *testing.T) {
	outcomes := planted(rand.New(rand.NewPCG(1, 1)), 2000, 0, 0)
	for i := range outcomes {
		for k := range outcomes[i].Arms {
			nll := 1 + float64(k)/2 // clearly worse, where it says anything
			outcomes[i].Arms[k].Exact, outcomes[i].Arms[k].NLL = i%20 == 0, &nll
		}
	}
	report, err := eval.Judge(twoArms, outcomes, eval.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := report.Text(&text); err != nil {
		t.Fatal(err)
	}
	if _, chosen := report.Choice(); chosen || report.Arms[1].Verdict != eval.Undecided ||
		!strings.Contains(text.String(), "no verdict: plain is right in 5.0 % of the rows") {
		t.Errorf("verdict %q, chosen %v\n%s", report.Arms[1].Verdict, chosen, text.String())
	}
}

// plantedScorer is a fake model: it is right in 70 % of the rows, by a hash of the question. Of the rows whose blocks do not stand as
// retrieved, it is right in the share gain more, and in the share loss fewer.
type plantedScorer struct {
	rows       map[string]*eval.Row // by question
	gain, loss float64
}

func (*plantedScorer) Name() string { return "planted" }

func (p *plantedScorer) Generate(_ context.Context, req engines.Request, _ int) (string, error) {
	messages := req.Messages
	last := messages[len(messages)-1].Content
	row := p.rows[last[strings.LastIndex(last, "\n")+1:]]
	if row == nil {
		return "", fmt.Errorf("no row asks %q", last)
	}
	moved, from := false, 0
	for _, b := range row.Blocks {
		at := strings.Index(last, b.Text)
		moved, from = moved || at < from, at
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(row.ID))
	x := rand.New(rand.NewPCG(h.Sum64(), 0))
	right, luck := x.Float64() < 0.7, x.Float64()
	if moved && right && luck < p.loss/0.7 {
		right = false
	} else if moved && !right && luck < p.gain/0.3 {
		right = true
	}
	if right {
		return row.Answers[0], nil
	}
	return "I do not know.", nil
}

// TestVerdictOnScorers: whole runs with models that lose 3 points by order, none, or gain 3.
func TestVerdictOnScorers(t *testing.T) {
	testkit.NotUnderRace(t)
	rows := generate(t, eval.Options{Rows: 2000, Seed: 5})
	for i := range rows {
		rows[i].Question = fmt.Sprintf("%d: %s", i, rows[i].Question)
	}
	known := map[string]*eval.Row{}
	for i := range rows {
		known[rows[i].Question] = &rows[i]
	}
	for _, c := range []struct {
		gain, loss float64
		want       eval.Verdict
	}{{0, 0.04, eval.Inferior}, {0, 0.03, eval.Inferior}, {0.02, 0.02, eval.NotInferior}, {0.03, 0, eval.NotInferior}} {
		run := &eval.Run{
			Rows: rows, Scorer: &plantedScorer{known, c.gain, c.loss}, System: eval.DefaultSystem, MaxTokens: 8,
			Arms: append(arms(t, eval.Plain), eval.Permutations(1)...),
		}
		report, err := eval.Judge(eval.Header{Arms: run.Arms}, do(t, run), eval.DefaultSettings())
		if err != nil {
			t.Fatal(err)
		}
		got := report.Arms[1]
		if d := got.ExactDiff.Mean - (c.gain - c.loss); math.Abs(d) > 0.012 {
			t.Errorf("planted %+.2f, measured %+.4f", c.gain-c.loss, got.ExactDiff.Mean)
		}
		if got.Verdict != c.want {
			t.Errorf("gain %v, loss %v: %q %+v, want %q", c.gain, c.loss, got.Verdict, got.ExactDiff, c.want)
		}
	}
}

func TestJudged(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      eval.Verdict
	}{
		{-0.01, 0.5, eval.NotInferior},
		{-0.02, 0, eval.Undecided},
		{-0.05, -0.021, eval.Inferior},
		{-0.05, -0.02, eval.Undecided},
		{math.NaN(), math.NaN(), eval.Undecided},
	} {
		if got := eval.Judged(0.02, eval.Interval{Low: c.low, High: c.high}); got != c.want {
			t.Errorf("[%v, %v]: %q, want %q", c.low, c.high, got, c.want)
		}
	}
	if got := eval.Judged(0.02, eval.Interval{Low: -0.01, High: 1}, eval.Interval{Low: -0.03, High: 1}); got != eval.Undecided {
		t.Errorf("intervals that disagree: %q", got)
	}
}
