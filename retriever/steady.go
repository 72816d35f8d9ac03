package retriever

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/tmc/langchaingo/schema"
	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// Defaults of [SteadyOptions].
const (
	DefaultBucket        = 0.02
	DefaultMargin        = 0.1
	DefaultConversations = 10_000
	DefaultQuestions     = 8
)

// SteadyOptions configures [NewSteady]. The zero value, with K set, is the recommended setup.
type SteadyOptions struct {
	// K is the number of documents given; at least 1. The inner retriever should find more, half as many again or
	// twice: a document that it does not find cannot be kept.
	K int
	// Bucket is the width of a score bucket as a share of the range of the result's scores. Documents whose scores are in
	// one bucket count as equal and are in the order of their IDs. 0: DefaultBucket; at most 1.
	Bucket float64
	// Margin is how much better a document must score to take the place of one that was given before, as a share of the
	// range of the result's scores. 0: DefaultMargin; at most 1.
	Margin float64
	// Conversations bounds the conversations remembered, least recently used first to go. 0: DefaultConversations.
	Conversations int
	// Questions bounds the questions remembered of each conversation, in the same way. 0: DefaultQuestions.
	Questions int
	// IDKeys name the metadata keys that hold a document's ID, as [WithIDKeys] does; nil: "id", "_id", "doc_id".
	IDKeys []string
}

func (o SteadyOptions) withDefaults() (SteadyOptions, error) {
	if o.K < 1 {
		return o, fmt.Errorf("%w: SteadyOptions.K is %d, want at least 1", ErrBadSource, o.K)
	}
	for _, share := range []struct {
		name  string
		value *float64
		def   float64
	}{{"Bucket", &o.Bucket, DefaultBucket}, {"Margin", &o.Margin, DefaultMargin}} {
		if !(*share.value >= 0 && *share.value <= 1) {
			return o, fmt.Errorf("%w: SteadyOptions.%s is %v, want 0 to 1", ErrBadSource, share.name, *share.value)
		}
		if *share.value == 0 {
			*share.value = share.def
		}
	}
	if o.Conversations < 0 || o.Questions < 0 {
		return o, fmt.Errorf("%w: SteadyOptions.Conversations %d, Questions %d, want none below 0", ErrBadSource, o.Conversations, o.Questions)
	}
	o.Conversations = cmp.Or(o.Conversations, DefaultConversations)
	o.Questions = cmp.Or(o.Questions, DefaultQuestions)
	if o.IDKeys == nil {
		o.IDKeys = defaultIDKeys()
	}
	return o, nil
}

// Steady gives equal questions of a conversation equal documents, although the scores of the retriever behind it jitter
// as those of approximate and distributed searches do: by up to (Margin − 2 Bucket) / 4 of their range each. Without a
// conversation in the context it only puts scores into buckets.
//
// A document that was given for the same question before keeps its place until another one is better by the margin. It
// must be found again, with the same text: what was deleted or changed is never given from memory. Given are always the
// documents as they were found now.
//
// It satisfies schema.Retriever and is safe for concurrent use if the inner retriever is. Wrap a [FanIn] in it, and it
// in [Wrap].
type Steady struct {
	inner schema.Retriever
	opts  SteadyOptions

	mu    sync.Mutex // guards talks and the caches in it; never held while the inner retriever runs
	talks *lru.Cache[string, *lru.Cache[question, []mark]]
}

type (
	question = xxh3.Uint128
	mark     = xxh3.Uint128 // of a document's ID and text
)

var _ schema.Retriever = (*Steady)(nil)

// NewSteady returns a Steady in front of inner.
func NewSteady(inner schema.Retriever, opts SteadyOptions) (*Steady, error) {
	if inner == nil {
		return nil, fmt.Errorf("%w: the inner retriever is nil", ErrBadSource)
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Steady{inner: inner, opts: opts, talks: lru.New[string, *lru.Cache[question, []mark]](opts.Conversations)}, nil
}

// GetRelevantDocuments returns K of what the inner retriever finds, fewer if it finds fewer. An error of it is
// returned as it is.
func (s *Steady) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	docs, err := s.inner.GetRelevantDocuments(ctx, query)
	if err != nil {
		return nil, err
	}
	list := s.entries(docs)
	talk := framework.ConversationFrom(ctx)
	if talk == "" {
		return s.pick(list, nil), nil
	}
	q := xxh3.HashString128(normalized(query))
	before := s.recall(talk, q)
	given := s.pick(list, before)
	s.keep(talk, q, list[:len(given)])
	return given, nil
}

// normalized makes questions equal that differ in white space and case only.
func normalized(query string) string {
	return strings.ToLower(strings.Join(strings.Fields(query), " "))
}

func (s *Steady) recall(talk string, q question) []mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	questions, ok := s.talks.Get(talk)
	if !ok {
		return nil
	}
	marks, _ := questions.Get(q)
	return marks // never changed once it is kept
}

func (s *Steady) keep(talk string, q question, given []entry) {
	marks := make([]mark, len(given))
	for i, e := range given {
		marks[i] = e.mark
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	questions, ok := s.talks.Get(talk)
	if !ok {
		questions = lru.New[question, []mark](s.opts.Questions)
		s.talks.Put(talk, questions)
	}
	questions.Put(q, marks)
}

// entry is a document that may be given.
type entry struct {
	doc    schema.Document
	id     string
	mark   mark
	score  float64 // 0…1 within the result
	bucket int     // 0 is the best
	before int     // the place it had, or notGiven
}

const notGiven = math.MaxInt

// entries gives each document its score's share of the range of scores. Without scores, ranks take their place.
func (s *Steady) entries(docs []schema.Document) []entry {
	low, high := scores(docs)
	list := make([]entry, len(docs))
	for i, d := range docs {
		e := entry{doc: d, id: idOf(d.Metadata, s.opts.IDKeys), before: notGiven}
		e.mark = xxh3.HashString128Seed(d.PageContent, xxh3.HashString(e.id))
		if high > low {
			e.score = max(0, (float64(d.Score)-low)/(high-low))
		} else {
			e.score = 1 - float64(i)/float64(len(docs))
		}
		if math.IsNaN(e.score) { // the retriever gave one, or an infinite one
			e.score = 0
		}
		list[i] = e
	}
	return list
}
