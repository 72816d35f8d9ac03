package eval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/internal/lab/draw"
)

// Options describe generated rows. Zero numbers stand for the defaults.
type Options struct {
	// Task is what rows ask for; empty: [Facts].
	Task Task
	// Rows is the number of rows, 2000 by default.
	Rows int
	// K is the number of blocks of each row, 5 by default, at most 20, or 128 with tasks other than [Facts]. [Connectivity] needs two for
	// each project of a person, and has that many by default if it is more.
	K int
	// Connectivity is how many projects a person of [Connectivity] belongs to, 1 to 8; 0: 2.
	Connectivity int
	// BlockTokens is the length of blocks of tasks other than [Facts], 128 to 2048 tokens of four bytes; 0: 256.
	BlockTokens int
	// Hops is the number of blocks that an answer of [Facts] takes, 1 by default: with 2 one block says which thing the question is about,
	// as the partner of another, and a second one what is asked of it.
	Hops int
	// Seed is what all random choices follow from.
	Seed uint64
	// Gold says at which rank a block with the answer stands.
	Gold GoldRanks
	// FollowUps is the share of conversations, 0 to 1, that have a second turn, which retrieves two of five blocks of the first
	// turn again. nil: 0.25. Tasks other than [Facts] have none.
	FollowUps *float64
}

// GoldRanks says how the rank of the block with the answer is drawn.
type GoldRanks string

// The kinds of [GoldRanks].
const (
	// GoldRanked gives rank r a weight of 1/r, as a retriever that is worth its money. The default.
	GoldRanked GoldRanks = "ranked"
	// GoldUniform makes all ranks equally likely.
	GoldUniform GoldRanks = "uniform"
)

// Sizes of the pool that rows share.
const (
	topics          = 24
	chunksPerRank   = 8  // of a topic, for each of the k blocks
	followUpLag     = 12 // rows between two turns at most
	followUpPercent = 40 // of the first turn's blocks come again
	maxK            = 20
	maxRows         = 1_000_000
)

func (o *Options) complete() error {
	if o.Rows == 0 {
		o.Rows = 2000
	}
	if o.Task == "" {
		o.Task = Facts
	}
	if err := o.completeTask(); err != nil {
		return err
	}
	if o.Gold == "" {
		o.Gold = GoldRanked
	}
	if o.FollowUps == nil {
		share := 0.25
		o.FollowUps = &share
	}
	if o.Hops == 0 {
		o.Hops = 1
	}
	switch {
	case o.Hops != 1 && o.Hops != 2:
		return fmt.Errorf("hops %d: want 1 or 2", o.Hops)
	case o.Hops == 2 && o.Task != Facts:
		return fmt.Errorf("hops %d: only with task %s", o.Hops, Facts)
	case o.Rows < 1 || o.Rows > maxRows:
		return fmt.Errorf("rows %d: want 1 to %d", o.Rows, maxRows)
	case o.Gold != GoldRanked && o.Gold != GoldUniform:
		return fmt.Errorf("gold %q: want %s or %s", o.Gold, GoldRanked, GoldUniform)
	case !(*o.FollowUps >= 0 && *o.FollowUps <= 1):
		return fmt.Errorf("follow-ups %v: want 0 to 1", *o.FollowUps)
	}
	return nil
}

// Generate makes rows: the same options make the same rows everywhere.
//
// With [Facts] every row asks for one fact that stands in one of its
// blocks and in no other; the other blocks say the same of other things, so that a reader who takes a value of the right
// kind from a block at random is right in one of k rows, and one who has not read the blocks in one of 28 (colours) to 9000
// (numbers). Blocks come from a pool of topics; topics, and blocks within a topic, are popular by a Zipf law.
func Generate(o Options) ([]Row, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	var next func(at int) Row
	if o.Task == Facts {
		next = newGenerator(o).next
	} else {
		next = newTasks(o).next
	}
	rows := make([]Row, 0, o.Rows)
	for len(rows) < o.Rows {
		rows = append(rows, next(len(rows)))
	}
	return rows, nil
}

// generator draws one row after the other.
type generator struct {
	o        Options
	r        *draw.Random
	pool     [][]chunk // by topic, the most popular chunk first
	topic    harmonic
	partner  [][]int // by topic and chunk, with two hops: the chunk whose partner it is
	chunk    harmonic
	rank     harmonic
	waiting  []turn // second turns to come, soonest first
	sessions int
}

// turn is a conversation that goes on.
type turn struct {
	due     int // row
	session string
	topic   int
	chunks  []int // of the first turn
	asked   [2]int
}

func newGenerator(o Options) *generator {
	g := &generator{o: o, r: draw.New(o.Seed, 1), topic: newHarmonic(topics), chunk: newHarmonic(chunksPerRank * o.K), rank: newHarmonic(o.K)}
	r := draw.New(o.Seed, 2)
	taken := map[string]bool{}
	numbers := make([]int, len(words().Families))
	for t := range topics {
		f := t % len(words().Families)
		chunks := make([]chunk, 0, chunksPerRank*o.K)
		for range chunksPerRank * o.K {
			numbers[f]++
			chunks = append(chunks, newChunk(r, &words().Families[f], fmt.Sprintf("%s-%d", words().Families[f].Name, numbers[f]), taken))
		}
		g.pool = append(g.pool, chunks)
	}
	if o.Hops == 2 {
		g.pair(r)
	}
	return g
}

// pair makes each chunk of a topic the partner of another one, which says so.
func (g *generator) pair(r *draw.Random) {
	for _, chunks := range g.pool {
		ring := draw.Permutation[int](r, len(chunks))
		of := make([]int, len(chunks))
		for i, from := range ring {
			to := ring[(i+1)%len(ring)]
			of[to] = from
			chunks[from].Text += " The partner of " + chunks[from].entity + " is " + chunks[to].entity + "."
		}
		g.partner = append(g.partner, of)
	}
}

// bridge puts the chunk that names a chunk's partner in place of another one, if it is not there, and returns it.
func (g *generator) bridge(topic int, order []int, gold int) (with []int, from int) {
	from = g.partner[topic][order[gold]]
	if slices.Contains(order, from) {
		return order, from
	}
	at := g.r.Below(len(order) - 1)
	if at >= gold {
		at++
	}
	with = slices.Clone(order)
	with[at] = from
	return with, from
}

// next draws the row at a place: a second turn whose time has come, or a new conversation.
func (g *generator) next(at int) Row {
	id := fmt.Sprintf("r%05d", at+1)
	if len(g.waiting) > 0 && g.waiting[0].due <= at {
		t := g.waiting[0]
		g.waiting = g.waiting[1:]
		row, _, _ := g.ask(id, t.topic, g.again(t), t.asked)
		row.Session = t.session
		return row
	}
	t := turn{topic: g.topic.draw(g.r)}
	row, order, asked := g.ask(id, t.topic, g.retrieve(nil), [2]int{-1, -1})
	if float64(g.r.Below(1<<20)) < *g.o.FollowUps*(1<<20) {
		g.sessions++
		t.due, t.session, t.chunks, t.asked = at+1+g.r.Below(followUpLag), fmt.Sprintf("s%d", g.sessions), order, asked
		row.Session = t.session
		g.waiting = append(g.waiting, t)
		slices.SortStableFunc(g.waiting, func(a, b turn) int { return a.due - b.due })
	}
	return row
}

// retrieve fills up to k different chunks of a topic, as a rule the popular ones first.
func (g *generator) retrieve(have []int) []int {
	for len(have) < g.o.K {
		if c := g.chunk.draw(g.r); !slices.Contains(have, c) {
			have = append(have, c)
		}
	}
	return have
}

// again retrieves some of a first turn's chunks and others.
func (g *generator) again(t turn) []int {
	var have []int
	for _, i := range draw.Permutation[int](g.r, len(t.chunks))[:max(1, g.o.K*followUpPercent/100)] {
		have = append(have, t.chunks[i])
	}
	have = g.retrieve(have)
	order := make([]int, len(have))
	for i, from := range draw.Permutation[int](g.r, len(have)) {
		order[i] = have[from]
	}
	return order
}

// ask draws a question about one of the chunks, whose answer stands in no other of them, and puts that chunk at a rank.
func (g *generator) ask(id string, topic int, retrieved []int, before [2]int) (row Row, ranked []int, asked [2]int) {
	f := &words().Families[topic%len(words().Families)]
	for {
		order, from := retrieved, 0
		gold := g.r.Below(len(order))
		if g.partner != nil {
			order, from = g.bridge(topic, order, gold)
		}
		asked = [2]int{order[gold], g.r.Below(len(f.Relations))}
		c := &g.pool[topic][asked[0]]
		answer := c.values[asked[1]]
		if asked == before || strings.Contains(c.entity, answer) || g.mentioned(answer, topic, order, gold) {
			continue
		}
		ranked = slices.Delete(slices.Clone(order), gold, gold+1)
		ranked = slices.Insert(ranked, g.goldRank(), asked[0])
		rel, of := &f.Relations[asked[1]], c.entity
		if g.partner != nil {
			of = "the partner of " + g.pool[topic][from].entity
		}
		row = Row{ID: id, Question: rel.question(of), Answers: []string{answer}, Lead: rel.lead(of), Gold: []string{c.ID}}
		for _, i := range ranked {
			row.Blocks = append(row.Blocks, g.pool[topic][i].Block)
		}
		return row, ranked, asked
	}
}

// mentioned reports whether a value stands in another chunk than the gold one.
func (g *generator) mentioned(value string, topic int, order []int, gold int) bool {
	for i, c := range order {
		if i != gold && strings.Contains(g.pool[topic][c].Text, value) {
			return true
		}
	}
	return false
}

func (g *generator) goldRank() int {
	if g.o.Gold == GoldUniform {
		return g.r.Below(g.o.K)
	}
	return g.rank.draw(g.r)
}

// harmonic draws 0 to n−1 with weights 1, 1/2, 1/3, …: a Zipf law with exponent 1.
type harmonic []int // sums of the weights so far

func newHarmonic(n int) harmonic {
	const unit = 1 << 24
	sums := make(harmonic, n)
	sum := 0
	for i := range sums {
		sum += unit / (i + 1)
		sums[i] = sum
	}
	return sums
}

func (h harmonic) draw(r *draw.Random) int {
	i, _ := slices.BinarySearch(h, r.Below(h[len(h)-1])+1)
	return i
}
