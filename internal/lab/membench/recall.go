package membench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/memory"
)

// Target is a store with an embedder: what is measured. The memory on top of it has no option set.
type Target struct {
	// Store names the backend in reports.
	Store string
	// Open opens the backend, which must be empty. The memory on top of it is closed in the end.
	Open func(ctx context.Context) (memory.Backend, error)
	// Embedder makes the vectors, and Name names it in reports.
	Embedder embed.Embedder
	Name     string
}

// Recalled is what was found in one target.
type Recalled struct {
	Store    string  `json:"store"`
	Embedder string  `json:"embedder"`
	Stages   []Stage `json:"stages"`
	// Add is the time of storing one statement, Search that of one search for [memory.DefaultK] memories.
	Add    Times `json:"add"`
	Search Times `json:"search"`
}

// Stage is what was found at one moment. Shares are from 0 to 1.
type Stage struct {
	Name string `json:"name"`
	// Questions are those that have an answer, and the shares of them whose needed text was among the first 1, 3 and 5.
	Questions int     `json:"questions"`
	At1       float64 `json:"recall_at_1"`
	At3       float64 `json:"recall_at_3"`
	At5       float64 `json:"recall_at_5"`
	// Disjoint are those of them that have no content stem in common with what they need, and the shares of these.
	Disjoint    int     `json:"disjoint"`
	DisjointAt1 float64 `json:"disjoint_recall_at_1"`
	DisjointAt5 float64 `json:"disjoint_recall_at_5"`
	// Updated are questions about facts that were replaced, and NewestFirst the share of them where the new text was found, in
	// front of the old one if that was found at all.
	Updated     int     `json:"updated,omitempty"`
	NewestFirst float64 `json:"newest_first,omitempty"`
	// Deleted counts hits with a deleted text, and Foreign hits with a memory of another user. Both must be 0.
	Deleted int `json:"deleted_found"`
	Foreign int `json:"foreign_found"`
}

// Times are the median and the 99th percentile of durations, and how many there were.
type Times struct {
	Count int           `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
}

// timesOf sorts the durations.
func timesOf(d []time.Duration) Times {
	slices.Sort(d)
	return Times{Count: len(d), P50: figures.Quantile(d, 0.5), P99: figures.Quantile(d, 0.99)}
}

// Recall has a memory store what the data say, as each user, and asks the questions: after what was said first, after updates and
// deletions if there are any, and after the chat if there is one.
func Recall(ctx context.Context, data *Data, target Target) (_ Recalled, err error) {
	backend, err := target.Open(ctx)
	if err != nil {
		return Recalled{}, err
	}
	store, err := memory.New(backend, memory.Config{Embedder: target.Embedder})
	if err != nil {
		return Recalled{}, errors.Join(err, backend.Close())
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	stems, err := newStems()
	if err != nil {
		return Recalled{}, err
	}
	m := measured{store: store, stems: stems}
	out := Recalled{Store: target.Store, Embedder: target.Name}
	out.Stages, err = m.stages(ctx, data)
	if err != nil {
		return Recalled{}, fmt.Errorf("store %s, embedder %s: %w", target.Store, target.Name, err)
	}
	out.Add, out.Search = timesOf(m.adds), timesOf(m.searches)
	return out, nil
}

// measured is a memory whose calls are timed.
type measured struct {
	store          *memory.Local
	stems          *stems
	adds, searches []time.Duration
}

// The stages' names.
const (
	stageFacts   = "facts alone"
	stageUpdated = "after updates and deletions"
	stageUsed    = "after the chat"
)

func (m *measured) stages(ctx context.Context, data *Data) ([]Stage, error) {
	changed, chat := false, false
	for i := range data.Cases {
		c := &data.Cases[i]
		changed, chat = changed || len(c.Updates)+len(c.Deleted) > 0, chat || len(c.Turns) > 0 && !c.Asked
		for _, said := range c.Statements {
			if err := m.add(ctx, c.User, said); err != nil {
				return nil, err
			}
		}
	}
	first := func(c *Case) []Question { return c.First }
	then := func(c *Case) []Question { return c.Then }
	facts, err := m.ask(ctx, stageFacts, data, first, false)
	if err != nil {
		return nil, err
	}
	stages := []Stage{facts}
	if changed {
		for i := range data.Cases {
			if err := m.change(ctx, &data.Cases[i]); err != nil {
				return nil, err
			}
		}
		s, err := m.ask(ctx, stageUpdated, data, then, true)
		if err != nil {
			return nil, err
		}
		stages = append(stages, s)
	}
	if !chat {
		return stages, nil
	}
	for i := range data.Cases {
		c := &data.Cases[i]
		for _, turn := range c.Turns {
			if err := talk(ctx, m.store, c.User, turn); err != nil {
				return nil, err
			}
		}
	}
	used, err := m.ask(ctx, stageUsed, data, then, true)
	if err != nil {
		return nil, err
	}
	return append(stages, used), nil
}

// add stores one statement.
func (m *measured) add(ctx context.Context, user string, said Said) error {
	began := time.Now()
	err := say(ctx, m.store, user, said)
	m.adds = append(m.adds, time.Since(began))
	return err
}

// change says a user's updates and deletes.
func (m *measured) change(ctx context.Context, c *Case) error {
	for _, text := range c.Updates {
		if err := m.add(ctx, c.User, Said{Text: text}); err != nil {
			return err
		}
	}
	return forget(ctx, m.store, c)
}

// ask asks all users' questions. Before anything was deleted, nothing can be found that is.
func (m *measured) ask(ctx context.Context, name string, data *Data, questions func(*Case) []Question, deleted bool) (Stage, error) {
	s := Stage{Name: name}
	for i := range data.Cases {
		c := &data.Cases[i]
		for _, q := range questions(c) {
			began := time.Now()
			hits, err := m.store.Search(ctx, memory.Scope{User: c.User}, q.Text, 0, memory.SearchOptions{})
			m.searches = append(m.searches, time.Since(began))
			if err != nil {
				return Stage{}, err
			}
			s.see(m.stems, c, q, hits, deleted)
		}
	}
	n, d := float64(max(s.Questions, 1)), float64(max(s.Disjoint, 1))
	s.At1, s.At3, s.At5 = s.At1/n, s.At3/n, s.At5/n
	s.DisjointAt1, s.DisjointAt5 = s.DisjointAt1/d, s.DisjointAt5/d
	s.NewestFirst /= float64(max(s.Updated, 1))
	return s, nil
}

// see counts what was found for one question.
func (s *Stage) see(stems *stems, c *Case, q Question, hits []memory.Hit, deleted bool) {
	ranks := map[string]int{} // text → rank from 1
	for i := range hits {
		found := &hits[i].Memory
		if ranks[found.Text] == 0 {
			ranks[found.Text] = i + 1
		}
		if found.Scope.User != c.User {
			s.Foreign++
		}
		if deleted && slices.Contains(c.Deleted, found.Text) {
			s.Deleted++
		}
	}
	if len(q.Needs) == 0 {
		return
	}
	s.Questions++
	within := func(k int) (share float64) {
		for _, text := range q.Needs {
			if rank := ranks[text]; rank > 0 && rank <= k {
				share++
			}
		}
		return share / float64(len(q.Needs))
	}
	s.At1, s.At3, s.At5 = s.At1+within(1), s.At3+within(3), s.At5+within(5)
	if !slices.ContainsFunc(q.Needs, func(text string) bool { return stems.share(q.Text, text) }) {
		s.Disjoint++
		s.DisjointAt1, s.DisjointAt5 = s.DisjointAt1+within(1), s.DisjointAt5+within(5)
	}
	if q.Old != "" {
		s.Updated++
		if rank, old := ranks[q.Needs[0]], ranks[q.Old]; rank > 0 && (old == 0 || rank < old) {
			s.NewestFirst++
		}
	}
}

// say adds one statement of a user.
func say(ctx context.Context, store memory.Store, user string, said Said) error {
	_, err := store.Add(ctx, memory.Scope{User: user}, []memory.Message{{Role: memory.User, Name: said.Speaker, Content: said.Text}},
		memory.AddOptions{})
	return err
}

// talk adds one turn of a chat.
func talk(ctx context.Context, store memory.Store, user string, turn Turn) error {
	_, err := store.Add(ctx, memory.Scope{User: user}, []memory.Message{
		{Role: memory.User, Content: turn.Text}, {Role: memory.Assistant, Content: turn.Answer},
	}, memory.AddOptions{})
	return err
}

// forget deletes what the user wants deleted.
func forget(ctx context.Context, store memory.Store, c *Case) error {
	if len(c.Deleted) == 0 {
		return nil
	}
	all, err := store.GetAll(ctx, memory.Scope{User: c.User}, memory.ListOptions{})
	if err != nil {
		return err
	}
	for i := range all {
		if slices.Contains(c.Deleted, all[i].Text) {
			if err := store.Delete(ctx, all[i].ID, memory.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}
