package citation

import (
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Document is a block as it was retrieved.
type Document struct {
	Block contextpilot.Block
	// Rank is its place in the retriever's result, from 1.
	Rank int
	// RequestID and Turn are those of the plan that it was retrieved for.
	RequestID string
	Turn      int
}

// Source is what a label stands for.
type Source struct {
	Label string
	// Documents holds the original document first: the one that the model was shown under this label. Behind it are
	// the documents that were merged into it, as they have the same text: repeats in one retrieval, and what later turns
	// retrieved and only referred to. There is always one.
	Documents []Document
	// Ref is set if the newest plan does not show the block but refers to the turn that did.
	Ref *contextpilot.Ref
}

// Resolver leads from labels to documents.
type Resolver interface {
	// Resolve returns what a label stands for. It must be safe for concurrent use.
	Resolve(label string) (Source, bool)
}

// DefaultPlans is the number of plans that [NewSources] remembers.
const DefaultPlans = 1024

// Sources knows the labels of one conversation, of the newest plans. If a label has changed its meaning, because a
// document's text has changed under its ID, the newest one counts. It is safe for concurrent use.
type Sources struct {
	mu    sync.RWMutex
	limit int
	plans []planned           // oldest first; guarded by mu
	named map[string][]naming // by label, oldest first; guarded by mu
}

// planned is a plan that is remembered, with the labels that it names.
type planned struct {
	request string
	labels  []string
}

// naming is what one plan says of a label.
type naming struct {
	request   string
	text      string
	documents []Document // the one that is shown or referred to, then its repeats
	ref       *contextpilot.Ref
}

var _ Resolver = (*Sources)(nil)

// NewSources returns an empty Sources that remembers [DefaultPlans] plans.
func NewSources() *Sources { return NewSourcesOf(DefaultPlans) }

// NewSourcesOf returns an empty Sources that remembers so many plans, one at least.
func NewSourcesOf(plans int) *Sources {
	return &Sources{limit: max(plans, 1), named: map[string][]naming{}}
}

// Add takes over what a plan shows and refers to. A plan of a request that is known replaces the earlier one.
func (s *Sources) Add(plan contextpilot.Plan) { s.AddRanked(plan, nil) }

// AddRanked adds a plan that was made of a selection: ranks[i] is the rank of its block i in the retriever's result. nil:
// the plan has the whole result.
func (s *Sources) AddRanked(plan contextpilot.Plan, ranks []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(plan.RequestID)
	for len(s.plans) >= s.limit {
		s.remove(s.plans[0].request)
	}
	p := planned{request: plan.RequestID}
	for _, it := range plan.Items {
		n := namingOf(&plan, it, ranks)
		p.labels = append(p.labels, s.put(it.Label, n)...)
		if it.Ref != nil {
			p.labels = append(p.labels, s.put(it.Ref.Label, n)...)
		}
	}
	s.plans = append(s.plans, p)
}

// Remove forgets a plan that was not sent.
func (s *Sources) Remove(request string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(request)
}

func (s *Sources) remove(request string) {
	i := slices.IndexFunc(s.plans, func(p planned) bool { return p.request == request })
	if i < 0 {
		return
	}
	for _, label := range s.plans[i].labels {
		ns := slices.DeleteFunc(s.named[label], func(n naming) bool { return n.request == request })
		if len(ns) == 0 {
			delete(s.named, label)
		} else {
			s.named[label] = ns
		}
	}
	s.plans = slices.Delete(s.plans, i, i+1)
}

// namingOf returns what an item of a plan says of its labels.
func namingOf(plan *contextpilot.Plan, it contextpilot.Item, ranks []int) naming {
	n := naming{request: plan.RequestID, text: plan.Block(it.Index).Text, ref: it.Ref}
	document := func(i int) {
		d := Document{Block: plan.Block(i), Rank: i + 1, RequestID: plan.RequestID, Turn: plan.Turn}
		if i < len(ranks) {
			d.Rank = ranks[i]
		}
		n.documents = append(n.documents, d)
	}
	document(it.Index)
	for _, l := range plan.LeftOut {
		if l.Reason == contextpilot.Duplicate && l.Same == it.Index {
			document(l.Index)
		}
	}
	return n
}

// put notes what a plan says of a label and returns the label if that is new. If a request has two texts under one label,
// the first in prompt order counts, as for [contextpilot.Plan.Cite].
func (s *Sources) put(label string, n naming) []string {
	ns := s.named[label]
	if last := len(ns) - 1; last >= 0 && ns[last].request == n.request {
		return nil
	}
	s.named[label] = append(ns, n)
	return []string{label}
}

// Resolve returns what a label stands for now.
func (s *Sources) Resolve(label string) (Source, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ns := s.named[label]
	if len(ns) == 0 {
		return Source{}, false
	}
	newest := ns[len(ns)-1]
	source := Source{Label: label, Ref: newest.ref}
	if newest.ref != nil && newest.ref.Label != label { // its own label, while the model sees it under another
		source.add(s.named[newest.ref.Label], newest.text)
	}
	source.add(ns, newest.text)
	return source, true
}

// add appends the documents that plans retrieved with a text under a label, from the last one that showed it on, but
// not those that are there.
func (s *Source) add(ns []naming, text string) {
	first := len(ns) - 1
	for i := first; i >= 0; i-- {
		if ns[i].text != text {
			continue
		}
		if first = i; ns[i].ref == nil {
			break
		}
	}
	for _, n := range ns[max(first, 0):] {
		if n.text != text {
			continue
		}
		known := len(s.Documents) // a request may retrieve one document twice
		for _, d := range n.documents {
			if !slices.ContainsFunc(s.Documents[:known], d.same) {
				s.Documents = append(s.Documents, d)
			}
		}
	}
}

// same reports whether two retrievals found the same document.
func (d Document) same(other Document) bool {
	return d.Block.ID == other.Block.ID && d.Block.Text == other.Block.Text
}
