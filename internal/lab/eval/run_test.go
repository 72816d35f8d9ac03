package eval_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func arms(t testing.TB, names ...string) []eval.Arm {
	t.Helper()
	var all []eval.Arm
	for _, name := range names {
		a, err := eval.ParseArm(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

func newRun(t testing.TB, rows int, s eval.Scorer) *eval.Run {
	t.Helper()
	return &eval.Run{
		Rows: generate(t, eval.Options{Rows: rows, Seed: 3}), Scorer: s, System: eval.DefaultSystem, MaxTokens: 32, Seed: 3,
		Arms: append(arms(t, append(slices.Clone(eval.DefaultArms), "pin-1", "top-at-end-2")...), eval.Permutations(2)...),
	}
}

func do(t testing.TB, r *eval.Run) []eval.Outcome {
	t.Helper()
	return testkit.Must(r.Do(t.Context()))(t)
}

// judged is the report of a run.
func judged(t testing.TB, r *eval.Run, outcomes []eval.Outcome) *eval.Report {
	t.Helper()
	return testkit.Must(eval.Judge(testkit.Must(r.Header())(t), outcomes, eval.DefaultSettings()))(t)
}

// TestRun: arms lay the rows out as they say, and what the model overlooks shows.
func TestRun(t *testing.T) {
	fake := &fakeTeller{fakeReader{sight: 2}}
	run := newRun(t, 300, fake)
	outcomes := do(t, run)
	for i, o := range outcomes {
		row := &run.Rows[i]
		if o.Row != row.ID || o.GoldRank != row.GoldRank() || len(o.Arms) != len(run.Arms) {
			t.Fatalf("%+v", o)
		}
		for k, a := range o.Arms {
			checkAnswer(t, row, run.Arms[k], &o, &a)
		}
	}
	for prompt, n := range fake.asked {
		if n > 1 {
			t.Fatalf("asked %d times:\n%s", n, prompt)
		}
	}
	checkReport(t, judged(t, run, outcomes))
}

func checkAnswer(t *testing.T, row *eval.Row, arm eval.Arm, o *eval.Outcome, a *eval.Answer) {
	t.Helper()
	all := slices.Sorted(slices.Values(slices.Concat(a.Sent, a.Refs)))
	if !reflect.DeepEqual(all, []int{0, 1, 2, 3, 4}) {
		t.Fatalf("row %s, arm %s: blocks %v and references %v", row.ID, arm.Name, a.Sent, a.Refs)
	}
	retrieved := slices.IsSorted(a.Sent)
	pinned := len(a.Sent) > 0 && a.Sent[0] == 0
	switch arm.Name {
	case eval.Plain:
		if !retrieved || a.Hint || *a.KL != 0 {
			t.Errorf("row %s, plain: %+v", row.ID, a)
		}
	case "order":
		if a.Hint || a.Refs != nil {
			t.Errorf("row %s, order: %+v", row.ID, a)
		}
	case "hint-before", "hint-after":
		if a.Refs != nil || a.Hint && retrieved {
			t.Errorf("row %s, %s: %+v", row.ID, arm.Name, a)
		}
	case eval.Default:
		if a.Hint || o.Turn == 1 && a.Refs != nil {
			t.Errorf("row %s, default: %+v", row.ID, a)
		}
		if o.Turn == 2 && a.Refs == nil {
			t.Errorf("row %s: no reference in the second turn", row.ID)
		}
	case "pin-1":
		if o.Turn == 1 && !pinned {
			t.Errorf("row %s: %v", row.ID, a.Sent)
		}
	case "top-at-end-2":
		if o.Turn == 1 && !reflect.DeepEqual(a.Sent[3:], []int{1, 0}) {
			t.Errorf("row %s: %v", row.ID, a.Sent)
		}
	}
	// The reader sees two blocks, and in second turns also what was sent in the first.
	at := slices.Index(a.Sent, o.GoldRank-1)
	switch {
	case at >= 0 && at < 2 || at < 0:
		if !a.Exact || !a.Contains || a.F1 != 1 || math.Abs(*a.NLL-1) > 1e-9 {
			t.Errorf("row %s, arm %s: gold at %d of %v: %+v", row.ID, arm.Name, at, a.Sent, a)
		}
	case o.Turn == 1:
		if a.Exact || a.Contains || math.Abs(*a.NLL-3) > 1e-9 {
			t.Errorf("row %s, arm %s: gold at %d of %v: %+v", row.ID, arm.Name, at, a.Sent, a)
		}
	}
}

func checkReport(t *testing.T, r *eval.Report) {
	t.Helper()
	by := map[string]eval.ArmReport{}
	for _, a := range r.Arms {
		by[a.Name] = a
	}
	plain, order := by[eval.Plain], by["order"]
	if plain.Ranks[1].Exact != 1 || plain.Ranks[5].Exact > 0.3 || plain.Verdict != "" || plain.Layouts.Same != 1 ||
		plain.Layouts.Reordered != 0 {
		t.Errorf("plain: %+v", plain)
	}
	if order.Layouts.Reordered < 0.5 || order.Layouts.Moved < 0.5 || order.Layouts.Computed >= plain.Layouts.Computed ||
		order.Layouts.Same > 0.5 {
		t.Errorf("order: %+v", order.Layouts)
	}
	if by["hint-before"].Layouts.Hints == 0 || by[eval.Default].Layouts.Refs < 0.1 ||
		by[eval.Default].Layouts.Tokens >= by["hint-before"].Layouts.Tokens {
		t.Errorf("hint-before %+v, default %+v", by["hint-before"].Layouts, by[eval.Default].Layouts)
	}
	// Gold stands in front in retrieval order; a reader who sees only the front loses by any other order.
	if order.ExactDiff.High > -0.02 || order.Verdict != eval.Inferior || order.ExactDiff.Losses <= order.ExactDiff.Gains || *order.KL <= 0 ||
		order.NLLDiff.Verdict != eval.Inferior {
		t.Errorf("order: %+v, NLL %+v, %s", order.ExactDiff, order.NLLDiff, order.Verdict)
	}
	if d := order.ExactDiff; math.Abs(d.Mean-(order.Exact-plain.Exact)) > 1e-9 || d.Low > d.Mean || d.High < d.Mean {
		t.Errorf("order: %+v of %v and %v", d, order.Exact, plain.Exact)
	}
	if o := r.Orders; o == nil || o.N != 2 || o.Unstable < 0.2 || o.Max < o.Min || o.Diff.Mean >= 0 {
		t.Errorf("random orders: %+v", o)
	}
}

// TestRunParallel: rows with the model at the same time make the same outcomes.
func TestRunParallel(t *testing.T) {
	one, many := newRun(t, 120, &fakeTeller{fakeReader{sight: 3}}), newRun(t, 120, &fakeTeller{fakeReader{sight: 3}})
	many.Parallel = 8
	recorded := map[string]int{}
	many.Record = func(o *eval.Outcome) error { recorded[o.Row]++; return nil }
	if !reflect.DeepEqual(do(t, one), do(t, many)) {
		t.Error("outcomes differ")
	}
	for id, n := range recorded {
		if n != 1 {
			t.Errorf("row %s recorded %d times", id, n)
		}
	}
	if len(recorded) != 120 {
		t.Errorf("%d rows recorded", len(recorded))
	}
}

// TestRunResumes: a run that is cut off anywhere, and in the middle of a line, goes on from its file, asks no row twice and
// ends with the outcomes of a run that was not.
func TestRunResumes(t *testing.T) {
	whole := newRun(t, 80, &fakeTeller{fakeReader{sight: 2}})
	want := do(t, whole)
	path := filepath.Join(t.TempDir(), "outcomes.jsonl")
	head, err := whole.Header()
	if err != nil {
		t.Fatal(err)
	}
	cut := errors.New("the power went off")
	asked := map[string]int{}
	for attempt := 0; ; attempt++ {
		fake := &fakeTeller{fakeReader{sight: 2, fail: func(call int) error {
			if call > 90 {
				return cut
			}
			return nil
		}}}
		run := newRun(t, 80, fake)
		log, done, err := eval.ResumeLog(path, head)
		if err != nil {
			t.Fatal(err)
		}
		if attempt > 0 && len(done) == 0 {
			t.Fatal("nothing was kept")
		}
		run.Done = done
		run.Record = func(o *eval.Outcome) error { asked[o.Row]++; return log.Add(o) }
		got, err := run.Do(t.Context())
		if e := log.Close(); e != nil {
			t.Fatal(e)
		}
		if err == nil {
			if !reflect.DeepEqual(got, want) {
				t.Error("outcomes differ from those of one run")
			}
			break
		}
		if !errors.Is(err, cut) || attempt > 20 {
			t.Fatal(err)
		}
		damage(t, path, attempt)
	}
	if len(asked) != 80 {
		t.Errorf("%d rows asked", len(asked))
	}
	for id, n := range asked {
		if n != 1 {
			t.Errorf("row %s was recorded %d times", id, n)
		}
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, kept, err := eval.ReadLog(file); err != nil || len(kept) != 80 {
		t.Errorf("the file has %d rows (%v)", len(kept), err)
	}
}

// damage adds the beginning of a line that was never finished.
func damage(t *testing.T, path string, attempt int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"row":"r00001","turn":1,"arms":[`[:1+attempt%20]); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestResumeLogRefuses: a file of another run, or a damaged one, is not gone on with.
func TestResumeLogRefuses(t *testing.T) {
	run := newRun(t, 5, &fakeReader{sight: 2})
	head, err := run.Header()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "outcomes.jsonl")
	log, err := eval.CreateLog(path, head)
	if err != nil {
		t.Fatal(err)
	}
	run.Record = log.Add
	outcomes := do(t, run)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := eval.CreateLog(path, head); !errors.Is(err, os.ErrExist) {
		t.Errorf("created again: %v", err)
	}
	for want, change := range map[string]func(*eval.Header){
		"scorer":      func(h *eval.Header) { h.Scorer = "other" },
		"rows_sha256": func(h *eval.Header) { h.RowsHash = "x" },
		"arms":        func(h *eval.Header) { h.Arms = h.Arms[:2] },
		"seed":        func(h *eval.Header) { h.Seed++ },
		"max_tokens":  func(h *eval.Header) { h.MaxTokens++ },
		"system":      func(h *eval.Header) { h.System += "!" },
	} {
		other := head
		change(&other)
		if _, _, err := eval.ResumeLog(path, other); err == nil || !strings.Contains(err.Error(), want+" is") {
			t.Errorf("another %s: %v", want, err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	for name, text := range map[string]string{
		"line 7: row \"r00001\": is that of line 2": string(data) + lines[1],
		"line 3: ":       lines[0] + lines[1] + "x\n" + lines[2],
		"line 1: ":       "{}\n",
		"0 arms, want 9": lines[0] + "{\"row\":\"r\",\"turn\":1,\"arms\":[]}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := eval.ResumeLog(path, head); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A file that somebody has edited.
	for _, edit := range []func(*eval.Outcome){
		func(o *eval.Outcome) { o.Turn = 0 }, func(o *eval.Outcome) { o.GoldRank = -1 }, func(o *eval.Outcome) { o.Session = "other" },
	} {
		edited := newRun(t, 20, &fakeReader{sight: 2})
		edited.Done = append(edited.Done, outcomes[4])
		edit(&edited.Done[0])
		if _, err := edited.Do(t.Context()); err == nil || !strings.Contains(err.Error(), `row "r00005": recorded as turn`) {
			t.Errorf("an edited file: %v", err)
		}
	}
	// Another program would have sent another prompt.
	outcomes[3].Arms[1].Prompt = "0000"
	again := newRun(t, 5, &fakeReader{sight: 2})
	again.Done = outcomes
	if _, err := again.Do(t.Context()); err == nil || !strings.Contains(err.Error(), `row "r00004", arm order: recorded with another prompt`) {
		t.Errorf("another prompt: %v", err)
	}
	again = newRun(t, 5, &fakeReader{sight: 2})
	again.Done = []eval.Outcome{outcomes[0], outcomes[0]}
	if _, err := again.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "done twice") {
		t.Errorf("done twice: %v", err)
	}
}

// TestRunErrors: what goes wrong names row and arm, and ends the run.
func TestRunErrors(t *testing.T) {
	broken := errors.New("engine is down")
	run := newRun(t, 20, &fakeReader{sight: 2, fail: func(call int) error {
		if call == 12 {
			return broken
		}
		return nil
	}})
	run.Parallel = 4
	if _, err := run.Do(t.Context()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "row \"r") ||
		!strings.Contains(err.Error(), "arm ") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newRun(t, 20, &fakeReader{sight: 2}).Do(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for want, list := range map[string][]eval.Arm{
		"want plain and at least one other": arms(t, "order", "plain"),
		"a second time":                     arms(t, "plain", "order", "order"),
		"unknown policy":                    {arms(t, "plain")[0], {Name: "x", Profile: profile.Profile{Policy: "none"}}},
		`hint "loud"`:                       {arms(t, "plain")[0], {Name: "x", Profile: profile.Profile{Hint: "loud"}}},
	} {
		run := newRun(t, 2, &fakeReader{sight: 2})
		run.Arms = list
		if _, err := run.Do(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
		run := newRun(t, 2, &badTeller{value: bad})
		if _, err := run.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "finite") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// TestTextTwice: retrievers find the same text under two IDs. Plain sends both, the default the first.
func TestTextTwice(t *testing.T) {
	run := newRun(t, 1, &fakeReader{sight: 9})
	run.Rows[0].Blocks[3].Text = run.Rows[0].Blocks[0].Text
	run.Arms = arms(t, "plain", "default")
	for _, a := range do(t, run)[0].Arms {
		sent, left := []int{0, 1, 2, 3, 4}, []int(nil)
		if a.Arm == eval.Default {
			sent, left = []int{0, 1, 2, 4}, []int{3}
		}
		if got := slices.Sorted(slices.Values(a.Sent)); !slices.Equal(got, sent) || !slices.Equal(a.LeftOut, left) {
			t.Errorf("%s: sent %v, left out %v; want %v, %v", a.Arm, got, a.LeftOut, sent, left)
		}
	}
}

// badTeller is a fake whose likelihoods are none.
type badTeller struct {
	fakeReader
	value float64
}

func (b *badTeller) Score(context.Context, engines.Request, eval.Forced) ([]float64, error) {
	return []float64{b.value}, nil
}

// TestShuffle: a random order is sent whatever the profile's policy is, and is another one for each number and seed.
func TestShuffle(t *testing.T) {
	run := newRun(t, 60, &fakeReader{sight: 2})
	best := eval.Permutations(1)[0]
	best.Name, best.Profile.Policy = "best", "best"
	run.Arms = append(append(arms(t, eval.Plain), eval.Permutations(2)...), best)
	differ := 0
	for _, o := range do(t, run) {
		if !slices.Equal(o.Arms[1].Sent, o.Arms[3].Sent) {
			t.Errorf("row %s: %v, with a policy %v", o.Row, o.Arms[1].Sent, o.Arms[3].Sent)
		}
		if !slices.Equal(o.Arms[1].Sent, o.Arms[2].Sent) {
			differ++
		}
	}
	if differ < 50 {
		t.Errorf("two random orders differ in %d of 60 rows", differ)
	}
}

// TestArms: names, and what they are made of.
func TestArms(t *testing.T) {
	for name := range strings.SplitSeq(strings.ReplaceAll(eval.ArmNames, "-N", "-3"), ", ") {
		a, err := eval.ParseArm(name)
		if err != nil || a.Name != name {
			t.Errorf("%s: %+v (%v)", name, a, err)
		}
		config, err := a.Profile.Apply(contextpilot.Config{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := contextpilot.New(config); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "pin-", "pin-0", "pin-01", "pin--1", "displace-x", "permute-1", "Plain"} {
		if a, err := eval.ParseArm(name); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("%q: %+v (%v)", name, a, err)
		}
	}
	config, err := arms(t, eval.Default)[0].Profile.Apply(contextpilot.Config{})
	if err != nil || !reflect.DeepEqual(config, contextpilot.Config{}) {
		t.Errorf("the default arm is %+v (%v)", config, err)
	}
}
