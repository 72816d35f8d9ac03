package eval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/internal/lab/draw"
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
	chains            = 2 // one of them is asked for
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
	r      *draw.Random
	corpus *corpus // of Connectivity
	rank   harmonic
}

func newTasks(o Options) *tasks {
	t := &tasks{o: o, r: draw.New(o.Seed, 3), rank: newHarmonic(o.K)}
	if o.Task == Connectivity {
		t.corpus = newCorpus(draw.New(o.Seed, 4), o.Connectivity, o.BlockTokens)
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
			at = t.r.Below(t.o.K)
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

// needle asks for the codes of one thing.
func (t *tasks) needle(row *Row) {
	names, codes := distinct(), distinct()
	name := func() string { return names(func() string { return ship(t.r) }) }
	code := func() string { return codes(func() string { return number(t.r) + number(t.r)[1:] }) } // seven digits
	lead := func(name string) string {
		if t.o.Task == NeedleValues {
			return "One code of " + name + " is"
		}
		return "The code of " + name + " is"
	}
	statements := make([][]string, t.o.K)
	if t.o.Task == NeedleKeys {
		for i := range statements {
			for range keysPerBlock {
				statements[i] = append(statements[i], lead(name())+" "+code()+".")
			}
		}
	}
	asked, values := name(), 1
	if t.o.Task == NeedleValues {
		values = min(valuesOfNeedle, t.o.K)
	}
	answer := make([]string, 0, values)
	gold := t.ranks(values)
	for _, at := range gold {
		value := code()
		answer = append(answer, value)
		sentence := lead(asked) + " " + value + "."
		if n := len(statements[at]); n > 0 {
			statements[at][t.r.Below(n)] = sentence
		} else {
			statements[at] = []string{sentence}
		}
	}
	row.Question, row.Lead = "What is the code of "+asked+"?", lead(asked)
	if t.o.Task == NeedleValues {
		row.Question, row.Lead = "Which codes does "+asked+" have?"+listed, "The codes of "+asked+" are"
	}
	row.Answers = []string{strings.Join(answer, ", ")}
	t.write(row, statements, gold)
}

// distinct returns a function that draws until there is something new.
func distinct() func(draw func() string) string {
	taken := map[string]bool{}
	return func(draw func() string) string {
		for {
			if s := draw(); !taken[s] {
				taken[s] = true
				return s
			}
		}
	}
}

// variables asks which variables have a value. Each takes it from the one before, and the statements stand in that order as the blocks
// were retrieved; a second chain has another value.
func (t *tasks) variables(row *Row) {
	names, values := distinct(), distinct()
	statements := make([][]string, t.o.K)
	gold := t.ranks(min(variablesPerChain, t.o.K))
	for chain := range chains {
		places := gold
		if chain > 0 {
			places = draw.Permutation[int](t.r, t.o.K)[:len(gold)]
			slices.Sort(places)
		}
		value := values(func() string { return number(t.r) + draw.Pick(t.r, digits) })
		all := make([]string, 0, variablesPerChain)
		from := value
		for i := range variablesPerChain {
			name := names(func() string {
				var b strings.Builder
				for range 5 {
					b.WriteString(draw.Pick(t.r, letters))
				}
				return b.String()
			})
			at := places[i*len(places)/variablesPerChain]
			statements[at] = append(statements[at], "Set "+name+" to "+from+".")
			all, from = append(all, name), name
		}
		if chain == 0 {
			row.Question, row.Lead = "Which variables have the value "+value+"?"+listed, "The variables with the value "+value+" are"
			row.Answers = []string{strings.Join(all, ", ")}
		}
	}
	t.write(row, statements, gold)
}

var digits = strings.Split("0123456789", "")

// common asks for the words that are most frequent in lists, one list a block: half of all words are the common ones, and each of them
// stands there ten times as often as another word, or as nearly as the lengths allow.
func (t *tasks) common(row *Row) {
	lists := listWords()
	order := draw.Permutation[int](t.r, len(lists))
	twice := 0 // the mean lengths of both halves with comma and space, added, times commonWords·len(order)
	for _, i := range order[:commonWords] {
		twice += (len(lists[i]) + 2) * len(order)
	}
	for _, w := range lists {
		twice += (len(w) + 2) * commonWords
	}
	inBlock := 4 * t.o.BlockTokens * 2 * commonWords * len(order) / twice
	total := inBlock * t.o.K
	often := total / (2 * commonWords)
	seldom := max(1, often/commonRatio)
	var all []string
	for _, i := range order[:commonWords] {
		all = append(all, slices.Repeat([]string{lists[i]}, often)...)
	}
	others := order[commonWords:][:min((total-len(all))/seldom, len(order)-commonWords)]
	for i := 0; len(all) < total; i++ {
		all = append(all, lists[others[i%len(others)]])
	}
	mixed := draw.Shuffled(t.r, all)
	var first []string // the common words as they come first
	for _, w := range mixed {
		if len(first) == commonWords {
			break
		}
		if !slices.Contains(first, w) && slices.Contains(order[:commonWords], slices.Index(lists, w)) {
			first = append(first, w)
		}
	}
	for i := range t.o.K {
		id := fmt.Sprintf("%s-%d", row.ID, i+1)
		row.Blocks = append(row.Blocks, Block{ID: id, Text: "Words: " + strings.Join(mixed[i*inBlock:][:inBlock], ", ") + "."})
		row.Gold = append(row.Gold, id)
	}
	row.Question = fmt.Sprintf("Which %d words are the most frequent in all lists together?%s", commonWords, listed)
	row.Lead, row.Answers = "The most frequent words are", []string{strings.Join(first, ", ")}
}
