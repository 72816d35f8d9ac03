package replay_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/workload"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the table of held-out workloads in docs/results.md")

// heldOut are seeds of the generator that were first used after all constants of the policies had been chosen. Constants must
// never be chosen on them: take new seeds here if they ever are.
var heldOut = []uint64{20261124, 20261125, 20261126}

// heldOutArms are the columns of the table.
var heldOutArms = []struct {
	policy  string
	offline bool
}{
	{"retrieval", false},
	{"frequency", false},
	{"knowledge-tree", false},
	{"paper", false},
	{"best", false},
	{"paper", true},
	{"best", true},
}

// docs/results.md shows what is measured on workloads that no constant was chosen on.
func TestHeldOut(t *testing.T) {
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("takes 30 s")
	}
	var mu sync.Mutex
	rows := map[string]string{}
	t.Run("workloads", func(t *testing.T) {
		for name, o := range generated() {
			if name == "no overlap" { // nothing can be saved
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				row := heldOutRow(t, name, o)
				mu.Lock()
				defer mu.Unlock()
				rows[name] = row
			})
		}
	})
	if t.Failed() {
		return
	}
	if len(rows) != len(generated())-1 {
		t.Skip("some workloads were left out by -run")
	}
	head, line := "| workload |", "|---|"
	for _, a := range heldOutArms {
		head += " `" + a.policy + offlineFlag(a.offline) + "` |"
		line += "---|"
	}
	table := head + " least lead of `best` online |\n" + line + "---|\n"
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		table += rows[name]
	}
	file := filepath.Join("..", "..", "..", "docs", "results.md")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- held out: begin -->\n", "<!-- held out: end -->\n"
	before, rest, ok := strings.Cut(string(raw), begin)
	shown, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the marks of the table", file)
	}
	if shown == table {
		return
	}
	if !*update {
		t.Fatalf("%s does not show what is measured (run with -update):\n%s", file, table)
	}
	if err := os.WriteFile(file, []byte(before+begin+table+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// heldOutRow measures all arms on a workload with each seed. Cells are means over the seeds; the lead is the smallest of the
// distances between best and the best other online policy on one seed, in points.
func heldOutRow(t *testing.T, name string, o workload.Options) string {
	sums := make([]float64, len(heldOutArms))
	lead := math.Inf(1)
	for _, seed := range heldOut {
		o.Seed = seed
		trc, blocks, err := workload.Generate(o)
		if err != nil {
			t.Fatal(err)
		}
		best, other := 0.0, 0.0
		for i, a := range heldOutArms {
			saved := send(t, planned(t, a.policy, a.offline, trc, blocks), 0, trc, blocks).saved
			sums[i] += saved
			switch {
			case a.offline:
			case a.policy == "best":
				best = saved
			default:
				other = max(other, saved)
			}
		}
		lead = min(lead, best-other)
	}
	row := "| " + name + " |"
	for _, s := range sums {
		row += fmt.Sprintf(" %.3f |", s/float64(len(heldOut)))
	}
	return row + fmt.Sprintf(" %+.1f |\n", 100*lead)
}

func offlineFlag(offline bool) string {
	if offline {
		return " --offline"
	}
	return ""
}
