package eval_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestTaskSameBytes: a change that changes rows makes runs incomparable; it must be seen.
func TestTaskSameBytes(t *testing.T) {
	want := map[eval.Task]string{
		eval.Connectivity: "daae6e97",
		eval.Needle:       "ecfb9570",
		eval.NeedleKeys:   "eddeda45",
		eval.NeedleValues: "4ef929fb",
		eval.Variables:    "b40cd226",
		eval.CommonWords:  "482b3582",
	}
	for _, task := range eval.Tasks()[1:] {
		sum := sha256.New()
		if err := eval.WriteRows(sum, generate(t, eval.Options{Task: task, Rows: 60, Seed: 1})); err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(sum.Sum(nil))[:8]; got != want[task] {
			t.Errorf("rows of %s have changed: %s", task, got)
		}
	}
}

// TestTasks: a reader who shares nothing with the generator finds the answer in the blocks, and finds another one, or none,
// without any of the
// blocks that are said to have it.
func TestTasks(t *testing.T) {
	testkit.NotUnderRace(t)
	rapid.Check(t, func(t *rapid.T) {
		o := eval.Options{
			Task: rapid.SampledFrom(eval.Tasks()[1:]).Draw(t, "task"), Rows: rapid.IntRange(1, 4).Draw(t, "rows"),
			Seed:        rapid.Uint64().Draw(t, "seed"),
			BlockTokens: rapid.SampledFrom([]int{0, 128, 200, 512}).Draw(t, "tokens"),
			Gold:        rapid.SampledFrom([]eval.GoldRanks{eval.GoldRanked, eval.GoldUniform}).Draw(t, "gold"),
		}
		least := 2
		if o.Task == eval.Connectivity {
			o.Connectivity = rapid.IntRange(1, 8).Draw(t, "connectivity")
			least = 2 * o.Connectivity
		}
		o.K = rapid.SampledFrom([]int{least, least + 1, max(5, least), max(40, least), 128}).Draw(t, "k")
		rows := readable(t, o)
		for i := range rows {
			checkTask(t, &rows[i], o)
		}
	})
}

func checkTask(t *rapid.T, r *eval.Row, o eval.Options) {
	if len(r.Blocks) != o.K || len(r.Answers) != 1 || r.Lead == "" || strings.Contains(r.Question+r.Lead, r.Answers[0]) {
		t.Fatalf("%d blocks, answers %q, lead %q, question %q", len(r.Blocks), r.Answers, r.Lead, r.Question)
	}
	tokens := cmp.Or(o.BlockTokens, 256)
	low, high := tokens-16, tokens
	if o.Task == eval.CommonWords {
		low, high = tokens*4/5, tokens*6/5
	}
	for _, b := range r.Blocks {
		if n := (contextpilot.Estimate{}).Count(b.Text); n < low || n > high {
			t.Fatalf("block %s has %d tokens, want %d:\n%s", b.ID, n, tokens, b.Text)
		}
	}
	if got := read(r.Blocks, r.Question); got != r.Answers[0] {
		t.Fatalf("%s\n%q, the reader finds %q in\n%v", r.Question, r.Answers, got, r.Blocks)
	}
	if len(r.Gold) == 0 {
		t.Fatalf("row %s names no block", r.ID)
	}
	if o.Task == eval.CommonWords {
		return // one list less changes little
	}
	for i, b := range r.Blocks {
		rest := slices.Delete(slices.Clone(r.Blocks), i, i+1)
		if same := read(rest, r.Question) == r.Answers[0]; same == slices.Contains(r.Gold, b.ID) && !repeated(r, b) {
			t.Fatalf("%s: %q without block %s, gold %v: %q", r.Question, read(rest, r.Question), b.ID, r.Gold, r.Answers)
		}
	}
}

// repeated reports whether another block may give the same value of a list.
func repeated(r *eval.Row, b eval.Block) bool {
	return strings.Contains(r.Question, " the projects of ") && slices.Contains(r.Gold, b.ID) &&
		2*len(strings.Split(r.Answers[0], ", ")) < len(r.Gold)
}

// read answers a question by the sentences of blocks alone.
func read(blocks []eval.Block, question string) string {
	question = strings.TrimSuffix(question, " List all, separated by commas.")
	all := func(pattern string) (found []string) {
		re := regexp.MustCompile(pattern)
		for _, b := range blocks {
			for _, m := range re.FindAllStringSubmatch(b.Text, -1) {
				if !slices.Contains(found, m[1]) {
					found = append(found, m[1])
				}
			}
		}
		return found
	}
	asks := func(pattern string) string {
		if m := regexp.MustCompile("^" + pattern + `\?$`).FindStringSubmatch(question); m != nil {
			return m[1]
		}
		return ""
	}
	var found []string
	if of := asks("What is the (.*)"); of != "" {
		found = all("The " + of + " is (.*?)\\.")
	} else if thing := asks("Which codes does (.*) have"); thing != "" {
		found = all("One code of " + thing + " is (.*?)\\.")
	} else if value := asks("Which variables have the value (.*)"); value != "" {
		for next := []string{value}; len(next) > 0; next = next[1:] {
			more := all("Set ([A-Z]+) to " + next[0] + "\\.")
			found, next = append(found, more...), append(next, more...)
		}
	} else if n := asks("Which (.*) words are the most frequent in all lists together"); n != "" {
		found = frequent(blocks, n)
	} else {
		patterns := map[string]string{
			"In which domains are the projects of (.*)":     "The domain of %s is (.*?)\\.",
			"In which years did the projects of (.*) begin": "The project %s began in (.*?)\\.",
			"Who are the sponsors of the projects of (.*)":  "The sponsor of %s is the (.*?)\\.",
		}
		for question, fact := range patterns {
			if who := asks(question); who != "" {
				for _, title := range all(who + " is a member of the project (.*?)\\.") {
					for _, v := range all(fmt.Sprintf(fact, title)) {
						if !slices.Contains(found, v) {
							found = append(found, v)
						}
					}
				}
			}
		}
	}
	return strings.Join(found, ", ")
}

// frequent returns the most frequent words in the order in which they come first; none if there is no gap behind the last of them.
func frequent(blocks []eval.Block, n string) []string {
	count, order := map[string]int{}, []string{}
	for _, b := range blocks {
		for _, w := range regexp.MustCompile(`[a-z]+[,.]`).FindAllString(b.Text, -1) {
			w = w[:len(w)-1]
			if count[w]++; count[w] == 1 {
				order = append(order, w)
			}
		}
	}
	var counts []int
	for _, c := range count {
		counts = append(counts, c)
	}
	slices.Sort(counts)
	slices.Reverse(counts)
	var most int
	if _, err := fmt.Sscan(n, &most); err != nil || counts[most-1] < 2*counts[most] {
		return nil
	}
	return slices.DeleteFunc(order, func(w string) bool { return count[w] < counts[most-1] })
}

// TestConnectivityCorpus: with all blocks of the corpus in a row, every person has as many memberships as the level says, in different
// projects, and half of the questions join them.
func TestConnectivityCorpus(t *testing.T) {
	for level := 1; level <= 8; level++ {
		rows := generate(t, eval.Options{Task: eval.Connectivity, Connectivity: level, K: 128, Rows: 50, Seed: 3})
		member := regexp.MustCompile(`\. ([A-Z]\S+ [A-Z]\S+) is a member of the project ([^.]*)\.`)
		of := map[string]map[string]bool{}
		pages := 0
		for _, b := range rows[0].Blocks {
			if m := member.FindStringSubmatch(b.Text); m != nil {
				if of[m[1]] == nil {
					of[m[1]] = map[string]bool{}
				}
				of[m[1]][m[2]] = true
				pages++
			}
		}
		for who, projects := range of {
			if len(projects) != level {
				t.Errorf("level %d: %s belongs to %d projects", level, who, len(projects))
			}
		}
		if pages != len(of)*level || pages == 0 {
			t.Errorf("level %d: %d memberships of %d people", level, pages, len(of))
		}
		joins := 0
		for i := range rows {
			if len(rows[i].Gold) == 2*level {
				joins++
			} else if len(rows[i].Gold) != 1 {
				t.Errorf("level %d: %d blocks have the answer", level, len(rows[i].Gold))
			}
		}
		if joins != 25 {
			t.Errorf("level %d: %d of 50 questions join blocks", level, joins)
		}
	}
}

func TestTaskErrors(t *testing.T) {
	some := 0.5
	for _, c := range []struct {
		o    eval.Options
		want string
	}{
		{eval.Options{Task: "sums"}, `task "sums": want one of [facts connectivity`},
		{eval.Options{Connectivity: 3}, "connectivity 3: only with task connectivity"},
		{eval.Options{Task: eval.Connectivity, Connectivity: 9}, "connectivity 9: want 1 to 8"},
		{eval.Options{Task: eval.Connectivity, Connectivity: 4, K: 7}, "k 7: want 8 to 128"},
		{eval.Options{Task: eval.Needle, K: 129}, "k 129: want 2 to 128"},
		{eval.Options{BlockTokens: 256}, "block-tokens 256: blocks of task facts"},
		{eval.Options{Task: eval.Needle, BlockTokens: 100}, "block-tokens 100: want 128 to 2048"},
		{eval.Options{Task: eval.Variables, FollowUps: &some}, "follow-ups 0.5: rows of task variables have no second turn"},
	} {
		if _, err := eval.Generate(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}
