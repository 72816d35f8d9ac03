package eval

import (
	"fmt"
	"slices"
)

// Task is what generated rows ask for. All but [Facts] follow the descriptions in two papers, with sentences of our own: the synthetic
// corpus of CacheNotes (appendix A), and the retrieval, tracing and aggregation tasks of RULER (Hsieh et al. 2024) that ProphetKV is
// measured with.
type Task string

// The tasks.
const (
	Facts        Task = "facts"         // one fact of one block
	Connectivity Task = "connectivity"  // people, projects and memberships: a value of one block, or a list that joins several
	Needle       Task = "needle"        // the code that one block states, among sentences without facts
	NeedleKeys   Task = "needle-keys"   // the same where every block states codes of other things
	NeedleValues Task = "needle-values" // all codes of one thing, which stand in several blocks
	Variables    Task = "variables"     // all variables of a value that is handed on from one to the next across blocks
	CommonWords  Task = "words"         // the ten words that are most frequent in lists
)

// Tasks are all tasks, the default first.
func Tasks() []Task {
	return []Task{Facts, Connectivity, Needle, NeedleKeys, NeedleValues, Variables, CommonWords}
}

// Sizes of the tasks.
const (
	maxTaskK          = 128
	minBlockTokens    = 128
	maxBlockTokens    = 2048
	maxConnectivity   = 8
	corpusBlocks      = 128 // of a connectivity level: 32k tokens in blocks of 256
	keysPerBlock      = 4   // things with a code in each block of NeedleKeys
	valuesOfNeedle    = 4   // codes of the one thing of NeedleValues
	variablesPerChain = 5
	chains            = 2 // of which one is asked for
	commonWords       = 10
	commonRatio       = 10 // a common word is so many times as frequent as others
)

// completeTask checks and fills in what tasks other than [Facts] have.
func (o *Options) completeTask() error {
	least, most := 2, maxTaskK
	switch {
	case !slices.Contains(Tasks(), o.Task):
		return fmt.Errorf("task %q: want one of %v", o.Task, Tasks())
	case o.Connectivity != 0 && o.Task != Connectivity:
		return fmt.Errorf("connectivity %d: only with task %s", o.Connectivity, Connectivity)
	case o.Connectivity < 0 || o.Connectivity > maxConnectivity:
		return fmt.Errorf("connectivity %d: want 1 to %d", o.Connectivity, maxConnectivity)
	case o.Task == Facts && o.BlockTokens != 0:
		return fmt.Errorf("block-tokens %d: blocks of task %s have %d to %d", o.BlockTokens, Facts, MinChunkTokens, MaxChunkTokens)
	case o.BlockTokens != 0 && (o.BlockTokens < minBlockTokens || o.BlockTokens > maxBlockTokens):
		return fmt.Errorf("block-tokens %d: want %d to %d", o.BlockTokens, minBlockTokens, maxBlockTokens)
	case o.Task != Facts && o.FollowUps != nil && *o.FollowUps != 0:
		return fmt.Errorf("follow-ups %v: rows of task %s have no second turn", *o.FollowUps, o.Task)
	}
	if o.BlockTokens == 0 {
		o.BlockTokens = 256
	}
	switch o.Task {
	case Facts:
		most = maxK
	case Connectivity:
		if o.Connectivity == 0 {
			o.Connectivity = 2
		}
		if least = 2 * o.Connectivity; o.K == 0 {
			o.K = max(5, least)
		}
	}
	if o.K == 0 {
		o.K = 5
	}
	if o.K < least || o.K > most {
		return fmt.Errorf("k %d: want %d to %d", o.K, least, most)
	}
	return nil
}

// tasks draws rows of a task.
type tasks struct {
	o      Options
	r      *random
	corpus *corpus // of Connectivity
	rank   harmonic
}

func newTasks(o Options) *tasks {
	t := &tasks{o: o, r: newRandom(o.Seed, 3), rank: newHarmonic(o.K)}
	if o.Task == Connectivity {
		t.corpus = newCorpus(newRandom(o.Seed, 4), o.Connectivity, o.BlockTokens)
	}
	return t
}

func (t *tasks) next(at int) Row {
	name := string(t.o.Task)
	if t.corpus != nil {
		name = fmt.Sprintf("connectivity-%d", t.o.Connectivity)
	}
	row := Row{ID: fmt.Sprintf("%s-%05d", name, at+1)}
	switch t.o.Task {
	case Connectivity:
		t.connected(&row, at%2 == 1)
	case Variables:
		t.variables(&row)
	case CommonWords:
		t.common(&row)
	default:
		t.needle(&row)
	}
	return row
}

// ranks draws n places of a row's blocks, best first, as [GoldRanks] says.
func (t *tasks) ranks(n int) []int {
	var all []int
	for len(all) < n {
		at := 0
		if t.o.Gold == GoldUniform {
			at = t.r.below(t.o.K)
		} else {
			at = t.rank.draw(t.r)
		}
		if !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	slices.Sort(all)
	return all
}

// write makes a row's blocks of what each states, and names those at the gold places.
func (t *tasks) write(row *Row, statements [][]string, gold []int) {
	for i, s := range statements {
		row.Blocks = append(row.Blocks, Block{ID: fmt.Sprintf("%s-%d", row.ID, i+1), Text: page(t.r, t.o.BlockTokens, "", s...)})
	}
	for _, at := range gold {
		row.Gold = append(row.Gold, row.Blocks[at].ID)
	}
}

// listed asks for all of what is asked for.
const listed = " List all, separated by commas."
