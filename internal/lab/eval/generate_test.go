package eval_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func generate(t testing.TB, o eval.Options) []eval.Row {
	t.Helper()
	return testkit.Must(eval.Generate(o))(t)
}

// readable generates rows and checks that the strict reader takes them.
func readable(t *rapid.T, o eval.Options) []eval.Row {
	t.Helper()
	rows := testkit.Must(eval.Generate(o))(t)
	var b bytes.Buffer
	if err := eval.WriteRows(&b, rows); err != nil {
		t.Fatal(err)
	}
	if again, err := eval.ReadRows(&b); err != nil || len(again) != o.Rows {
		t.Fatalf("the strict reader takes %d of %d rows: %v", len(again), o.Rows, err)
	}
	return rows
}

// TestGenerateSameBytes: a change that changes rows makes runs incomparable; it must be seen.
func TestGenerateSameBytes(t *testing.T) {
	sum := sha256.New()
	if err := eval.WriteRows(sum, generate(t, eval.Options{Rows: 500, Seed: 1})); err != nil {
		t.Fatal(err)
	}
	const want = "8629141448daa3ca05b9c7a95c0bc35dcc0baa1b3fa80adec4403ade2593e021"
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		t.Errorf("rows have changed: %s", got)
	}
}

// TestGenerateRows: what the rows promise, whatever the options.
func TestGenerateRows(t *testing.T) {
	testkit.NotUnderRace(t)
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(t, "follow-ups")
		o := eval.Options{
			Rows: rapid.IntRange(1, 120).Draw(t, "rows"), K: rapid.IntRange(2, 20).Draw(t, "k"), Seed: rapid.Uint64().Draw(t, "seed"),
			Gold: rapid.SampledFrom([]eval.GoldRanks{eval.GoldRanked, eval.GoldUniform}).Draw(t, "gold"), FollowUps: &share,
		}
		rows := readable(t, o)
		texts := map[string]string{}
		before := map[string]*eval.Row{}
		for i := range rows {
			checkRow(t, &rows[i], o, texts, before[rows[i].Session])
			if rows[i].Session != "" {
				before[rows[i].Session] = &rows[i]
			}
		}
	})
}

func checkRow(t *rapid.T, r *eval.Row, o eval.Options, texts map[string]string, before *eval.Row) {
	if len(r.Blocks) != o.K {
		t.Fatalf("row %s has %d blocks, want %d", r.ID, len(r.Blocks), o.K)
	}
	fact := r.Lead + " " + r.Answers[0] + "."
	kind := r.Lead[:strings.Index(r.Lead, " of ")]
	again := 0
	for _, b := range r.Blocks {
		if was, ok := texts[b.ID]; ok && was != b.Text {
			t.Fatalf("block %s has two texts", b.ID)
		}
		texts[b.ID] = b.Text
		if n := (contextpilot.Estimate{}).Count(b.Text); n < eval.MinChunkTokens || n > eval.MaxChunkTokens {
			t.Fatalf("block %s has %d tokens: %s", b.ID, n, b.Text)
		}
		gold := b.ID == r.Gold[0]
		if strings.Contains(b.Text, r.Answers[0]) != gold || strings.Contains(b.Text, fact) != gold {
			t.Fatalf("row %s: %q in block %s of gold %s:\n%s", r.ID, fact, b.ID, r.Gold[0], b.Text)
		}
		if !strings.Contains(b.Text, kind+" of ") {
			t.Fatalf("row %s: block %s does not state %q: %s", r.ID, b.ID, kind, b.Text)
		}
		if before != nil && slices.ContainsFunc(before.Blocks, func(x eval.Block) bool { return x.ID == b.ID }) {
			again++
		}
	}
	if strings.Contains(r.Question, r.Answers[0]) {
		t.Fatalf("row %s: the question %q has the answer", r.ID, r.Question)
	}
	if before != nil && (again == 0 || before.Question == r.Question) {
		t.Fatalf("row %s repeats %d blocks of %s, question %q after %q", r.ID, again, before.ID, r.Question, before.Question)
	}
}

// TestGenerateSpread: ranks of gold blocks, popularity of blocks and lengths are as described.
// TestTwoHops: one block names the thing that is asked about, as another's partner, and a second one has the answer.
func TestTwoHops(t *testing.T) {
	testkit.NotUnderRace(t)
	rapid.Check(t, func(t *rapid.T) {
		o := eval.Options{Rows: 60, K: rapid.IntRange(2, 20).Draw(t, "k"), Seed: rapid.Uint64().Draw(t, "seed"), Hops: 2}
		for _, row := range readable(t, o) {
			text := map[string]string{}
			for _, b := range row.Blocks {
				text[b.ID] = b.Text
			}
			if len(text) != o.K || len(row.Gold) != 1 {
				t.Fatalf("row %s: %d different blocks, gold %v", row.ID, len(text), row.Gold)
			}
			partner := row.Question[strings.Index(row.Question, "the partner of ")+len("the ") : len(row.Question)-1]
			all := ""
			for id := range text {
				if id != row.Gold[0] {
					all += text[id]
				}
			}
			_, rest, ok := strings.Cut(all, partner+" is ")
			name, _, _ := strings.Cut(rest, ".")
			noun, _, _ := strings.Cut(strings.TrimPrefix(row.Lead, "The "), " of the partner of ")
			if fact := "The " + noun + " of " + name + " is " + row.Answers[0] + "."; !ok || !strings.Contains(text[row.Gold[0]], fact) {
				t.Fatalf("row %s: %q of %q and %q", row.ID, row.Question, text[row.Gold[0]], all)
			}
			if strings.Contains(all, row.Answers[0]) {
				t.Fatalf("row %s: the answer stands in other blocks, too", row.ID)
			}
		}
	})
}

func TestGenerateSpread(t *testing.T) {
	rows := generate(t, eval.Options{Rows: 4000, K: 5, Seed: 7})
	ranks := make([]float64, 6)
	answers := map[string]int{}
	uses := map[string]int{}
	later := 0
	for i := range rows {
		ranks[rows[i].GoldRank()] += 1.0 / 4000
		answers[rows[i].Answers[0]]++
		for _, b := range rows[i].Blocks {
			uses[b.ID]++
		}
		if i > 0 && rows[i].Session != "" &&
			slices.ContainsFunc(rows[max(0, i-12):i], func(r eval.Row) bool { return r.Session == rows[i].Session }) {
			later++
		}
	}
	for r, want := range []float64{0, 0.438, 0.219, 0.146, 0.109, 0.088} { // 1/r, in sum 1
		if d := ranks[r] - want; d > 0.025 || d < -0.025 {
			t.Errorf("gold at rank %d in %.3f of the rows, want %.3f", r, ranks[r], want)
		}
	}
	if len(answers) < 800 {
		t.Errorf("%d different answers", len(answers))
	}
	for a, n := range answers {
		if n > 4000/50 {
			t.Errorf("answer %q in %d rows: it could be guessed", a, n)
		}
	}
	counts := make([]int, 0, len(uses))
	for _, n := range uses {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	top, all := 0, 0
	for i, n := range counts {
		all += n
		if i >= len(counts)*9/10 {
			top += n
		}
	}
	if share := float64(top) / float64(all); share < 0.35 || share > 0.75 {
		t.Errorf("the most popular tenth of the blocks makes %.2f of all", share)
	}
	if share := float64(later) / 4000; share < 0.17 || share > 0.23 { // 0.25 of conversations: a fifth of rows
		t.Errorf("%.3f of the rows are second turns", share)
	}
}

func TestGenerateErrors(t *testing.T) {
	much := 1.5
	for _, c := range []struct {
		o    eval.Options
		want string
	}{
		{eval.Options{Rows: -1}, "rows -1"},
		{eval.Options{K: 1}, "k 1"},
		{eval.Options{K: 21}, "k 21"},
		{eval.Options{Gold: "best"}, `gold "best"`},
		{eval.Options{FollowUps: &much}, "follow-ups 1.5"},
		{eval.Options{Hops: 3}, "hops 3"},
		{eval.Options{Hops: 2, Task: eval.Connectivity}, "hops 2: only with task facts"},
	} {
		if _, err := eval.Generate(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}
