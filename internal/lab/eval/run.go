package eval

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Run asks a model every row in every arm. Rows are planned in their order by one pilot for each arm; answers may come in
// any order. A Run is used once.
type Run struct {
	Rows   []Row
	Arms   []Arm // the plain one first
	Scorer Scorer
	// System is the system message; empty: none.
	System string
	// MaxTokens bounds answers.
	MaxTokens int
	// Seed is that of random orders.
	Seed uint64
	// Parallel is the number of rows that are with the model at a time; 0: 1.
	Parallel int
	// Cells are, for an arm about cells, the order of the blocks of each row.
	Cells [][]int
	// Done are outcomes of an earlier part of the same run. The rows are planned again, so that pilots know them, and not asked.
	Done []Outcome
	// Record, if not nil, is called with each new outcome, one at a time. An error ends the run.
	Record func(*Outcome) error
}

// job is a row on its way to the model.
type job struct {
	row     *Row
	at      int
	turn    int
	prompts []prompt // by arm
}

// work is a run under way.
type work struct {
	*Run
	desks []*desk
	done  map[string]*Outcome

	mu       sync.Mutex // guards what follows, and the desks
	next     int
	turns    map[string]int
	outcomes []Outcome // by row
}

// Do returns the outcomes of all rows in their order, those of Done included. It ends at the first error; what was recorded
// until then is complete row by row.
func (r *Run) Do(ctx context.Context) ([]Outcome, error) {
	if err := CheckArms(r.Arms); err != nil {
		return nil, err
	}
	w := &work{Run: r, done: map[string]*Outcome{}, turns: map[string]int{}, outcomes: make([]Outcome, len(r.Rows))}
	for _, a := range r.Arms {
		d, err := newDesk(a, r.Seed, r.System)
		if err != nil {
			return nil, err
		}
		if d.cells = r.Cells; a.Cells != "" && len(r.Cells) != len(r.Rows) {
			return nil, fmt.Errorf("arm %s: orders of the cells of %d rows, want %d", a.Name, len(r.Cells), len(r.Rows))
		}
		w.desks = append(w.desks, d)
	}
	for i := range r.Done {
		if w.done[r.Done[i].Row] != nil {
			return nil, fmt.Errorf("row %q: done twice", r.Done[i].Row)
		}
		w.done[r.Done[i].Row] = &r.Done[i]
	}
	group, ctx := errgroup.WithContext(ctx)
	for range max(r.Parallel, 1) {
		group.Go(func() error { return w.loop(ctx) })
	}
	return w.outcomes, group.Wait()
}

// loop takes one row after the other to the model.
func (w *work) loop(ctx context.Context) error {
	for {
		j, err := w.take()
		if j == nil || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		o, err := w.ask(ctx, j)
		if err != nil {
			return fmt.Errorf("row %q: %w", j.row.ID, err)
		}
		if err := w.keep(j.at, o); err != nil {
			return err
		}
	}
}

// take plans rows up to the next one that is not done; nil: there is none.
func (w *work) take() (*job, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.next < len(w.Rows) {
		j := &job{row: &w.Rows[w.next], at: w.next, turn: 1}
		w.next++
		if j.row.Session != "" {
			w.turns[j.row.Session]++
			j.turn = w.turns[j.row.Session]
		}
		for _, d := range w.desks {
			p, err := d.plan(j.at, j.row)
			if err != nil {
				return nil, err
			}
			j.prompts = append(j.prompts, p)
		}
		o := w.done[j.row.ID]
		if o == nil {
			return j, nil
		}
		if err := same(o, w.Arms, j); err != nil {
			return nil, err
		}
		for i := range o.Arms {
			o.Arms[i].Match = MatchText(o.Arms[i].Text, j.row) // as all others are compared
		}
		w.outcomes[j.at] = *o
	}
	return nil, nil
}

// same reports whether an outcome is that of a job.
func same(o *Outcome, arms []Arm, j *job) error {
	if rank := j.row.GoldRank(); o.Session != j.row.Session || o.Turn != j.turn || o.GoldRank != rank {
		return fmt.Errorf("row %q: recorded as turn %d of session %q with gold_rank %d, want %d, %q, %d", o.Row, o.Turn, o.Session, o.GoldRank,
			j.turn, j.row.Session, rank)
	}
	if len(o.Arms) != len(arms) {
		return fmt.Errorf("row %q: recorded with %d arms, want %d", o.Row, len(o.Arms), len(arms))
	}
	for i, a := range o.Arms {
		if a.Arm != arms[i].Name || a.Prompt != j.prompts[i].key {
			return fmt.Errorf("row %q, arm %s: recorded with another prompt (%s %s, now %s): the settings or the program have changed", o.Row,
				arms[i].Name, a.Arm, a.Prompt, j.prompts[i].key)
		}
	}
	return nil
}

func (w *work) keep(at int, o *Outcome) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcomes[at] = *o
	if w.Record == nil {
		return nil
	}
	return w.Record(o)
}

// ask gets the answers of all arms, each different prompt once.
func (w *work) ask(ctx context.Context, j *job) (*Outcome, error) {
	o := &Outcome{Row: j.row.ID, Session: j.row.Session, Turn: j.turn, GoldRank: j.row.GoldRank()}
	var plain [][]float32
	known := map[string]int{}
	for i := range j.prompts {
		p := &j.prompts[i]
		a := Answer{Arm: w.Arms[i].Name, Prompt: p.key, Layout: p.layout}
		if k, ok := known[p.key]; ok {
			a.Text, a.Match, a.NLL, a.KL = o.Arms[k].Text, o.Arms[k].Match, o.Arms[k].NLL, o.Arms[k].KL
		} else if err := w.answer(ctx, j.row, p, &a, &plain); err != nil {
			return nil, fmt.Errorf("arm %s: %w", a.Arm, err)
		} else {
			known[p.key] = i
		}
		o.Arms = append(o.Arms, a)
	}
	return o, nil
}

// answer asks the model. plain holds the plain arm's distributions, once they are known.
func (w *work) answer(ctx context.Context, row *Row, p *prompt, a *Answer, plain *[][]float32) error {
	if err := w.generate(ctx, p, a); err != nil {
		return err
	}
	a.Match = MatchText(a.Text, row)
	forced := Forced{Lead: row.Lead, Answer: row.Answers[0]}
	var logProbs []float64
	var err error
	if s, ok := w.Scorer.(DistributionScorer); ok && len(w.Arms) > 1 { // an arm alone has none to be compared with
		var here [][]float32
		if logProbs, here, err = s.Distribution(ctx, p.request, forced); err != nil {
			return err
		}
		if *plain == nil {
			*plain = here
		}
		kl, err := divergence(*plain, here)
		if err != nil {
			return err
		}
		a.KL = &kl
	}
	if s, ok := w.Scorer.(LikelihoodScorer); ok && logProbs == nil {
		if logProbs, err = s.Score(ctx, p.request, forced); err != nil {
			return err
		}
	} else if !ok && logProbs == nil {
		return nil
	}
	nll, err := meanNLL(logProbs)
	if err != nil {
		return err
	}
	a.NLL = &nll
	return nil
}

// generate gets the answer's text, and what it took of arms that are asked alone: others share the engine's cache.
func (w *work) generate(ctx context.Context, p *prompt, a *Answer) (err error) {
	s, ok := w.Scorer.(UsageScorer)
	if !ok || len(w.Arms) > 1 {
		a.Text, err = w.Scorer.Generate(ctx, p.request, w.MaxTokens)
		return err
	}
	text, usage, err := s.GenerateUsage(ctx, p.request, w.MaxTokens)
	a.Text, a.PromptTokens = text, usage.PromptTokens
	if usage.CachedKnown {
		a.CachedTokens = &usage.CachedTokens
	}
	return err
}
