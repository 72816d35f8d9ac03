package local_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
)

// fact is one that a block states.
type fact struct{ question, lead, value string }

var factSentence = regexp.MustCompile(`The ([a-z][a-z ]*) of ([^.]+?) is ([^.]+)\.`)

func factsOf(blocks []eval.Block) (all []fact) {
	for _, b := range blocks {
		for _, m := range factSentence.FindAllStringSubmatch(b.Text, -1) {
			of := m[1] + " of " + m[2]
			all = append(all, fact{"What is the " + of + "?", "The " + of + " is", m[3]})
		}
	}
	return all
}

// fitCorpus has blocks of two tasks, shuffled, and notes on half of the facts of the first.
type fitCorpus struct {
	documents             []local.Document
	notes                 string
	noted, left, elsewise []fact // of the first task in the notes and not, and of the second
	beside                string // blocks of a third
}

func fitCorpora(t *testing.T, n, blocks int, seed uint64) []fitCorpus {
	t.Helper()
	tasks, rows := []eval.Task{eval.Facts, eval.Connectivity, eval.NeedleKeys}, map[eval.Task][]eval.Row{}
	for _, task := range tasks {
		none := 0.0
		o := eval.Options{Task: task, Rows: n, Seed: seed, K: blocks, FollowUps: &none}
		if task != eval.Facts {
			o.BlockTokens = 128
		}
		if task == eval.Connectivity {
			o.K++
		}
		var err error
		if rows[task], err = eval.Generate(o); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(seed, 5))
	all := make([]fitCorpus, n)
	for i := range all {
		c, of := &all[i], r.Perm(len(tasks))
		first, second, third := rows[tasks[of[0]]][i].Blocks, rows[tasks[of[1]]][i].Blocks, rows[tasks[of[2]]][i].Blocks
		blocks := slices.Concat(first, second)
		r.Shuffle(len(blocks), func(a, b int) { blocks[a], blocks[b] = blocks[b], blocks[a] })
		for _, b := range blocks {
			c.documents = append(c.documents, local.Document{Name: b.ID, Text: b.Text})
		}
		facts := factsOf(first)
		half := (len(facts) + 1) / 2
		c.noted, c.left, c.elsewise = facts[:half], facts[half:], factsOf(second)
		c.notes = "Cheat sheet:\n"
		for _, f := range c.noted {
			c.notes += "- " + f.lead + " " + f.value + ".\n"
		}
		c.beside = third[0].Text + "\n" + third[1].Text + "\n"
	}
	return all
}

// TestSmolLM2ContextFit asks a context made by notes of one task about it, and about another that the same documents are for. What
// is above the limit is of the other task as a rule. RAGPILOT_FIT_CORPORA is how many texts there are, RAGPILOT_FIT_SEED
// which, RAGPILOT_FIT_BLOCKS how many blocks of a task they have, RAGPILOT_FIT_BUDGET what is kept.
func TestSmolLM2ContextFit(t *testing.T) {
	model := modeltest.Fast(t)
	set := func(name string, or int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return or
	}
	count := set("RAGPILOT_FIT_CORPORA", 4)
	corpora := fitCorpora(t, count, set("RAGPILOT_FIT_BLOCKS", 3), uint64(set("RAGPILOT_FIT_SEED", 101)))
	got, warned, order := map[string][]float64{}, map[string]int{}, []string{}
	var made local.Compressed
	for i, c := range corpora {
		var err error
		made, err = local.Compress(t.Context(), local.Compression{
			Model: model, Documents: c.documents, Task: "Answer questions.", Notes: c.notes, Budget: os.Getenv("RAGPILOT_FIT_BUDGET"),
			Out: filepath.Join(t.TempDir(), fmt.Sprint(i)),
		})
		if err != nil {
			t.Fatal(err)
		}
		e, err := local.Open(local.Config{Model: model, Contexts: map[string]string{"c": made.File}})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(kind, front string, f fact, before ...engines.Message) {
			messages := append(before, engines.Message{Role: engines.User, Content: front + f.question})
			a := generate(t, e, engines.Request{Messages: messages, MaxTokens: 17, Extra: extra("context", "c")})
			if a.Context == nil {
				return
			}
			if got[kind] == nil {
				order = append(order, kind)
			}
			if got[kind] = append(got[kind], a.Context.Drift); a.Context.OtherTask {
				warned[kind]++
			}
		}
		turn := func(f fact) []engines.Message {
			return []engines.Message{{Role: engines.User, Content: f.question}, {Role: engines.Assistant, Content: f.lead + " " + f.value + "."}}
		}
		for j := range 4 {
			ask("in the notes", "", c.noted[j%len(c.noted)])
			ask("in the notes, second turn", "", c.noted[j%len(c.noted)], turn(c.noted[(j+1)%len(c.noted)])...)
			ask("of the task, not in the notes", "", c.left[j%len(c.left)])
			ask("other task", "", c.elsewise[j%len(c.elsewise)])
			ask("other task, second turn", "", c.elsewise[j%len(c.elsewise)], turn(c.noted[0])...)
			if j < 2 {
				ask("in the notes, other text in front", c.beside, c.noted[j%len(c.noted)])
				ask("other task, other text in front", c.beside, c.elsewise[j%len(c.elsewise)])
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the last text: %d tokens, %d slots", made.Tokens, made.Slots)
	for _, kind := range order {
		all := slices.Sorted(slices.Values(got[kind]))
		n := len(all)
		t.Logf(
			"%-36s %3d answers, %3.0f %% warned of; drift %.2f, %.2f to %.2f",
			kind,
			n,
			100*float64(warned[kind])/float64(n),
			all[n/2],
			all[n/20],
			all[n-1-n/20],
		)
	}
	right, wrong := float64(
		warned["other task"],
	)/float64(
		len(got["other task"]),
	), float64(
		warned["in the notes"],
	)/float64(
		len(got["in the notes"]),
	)
	if os.Getenv("RAGPILOT_FIT_BUDGET") == "" && (right < 0.6 || wrong > 0.2) {
		t.Errorf("%.2f of the questions of another task are warned of, and %.2f of those that notes answer", right, wrong)
	}
}
