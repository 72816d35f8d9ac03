//go:build unix

package vllmtest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// passage returns the text of passage i of a collection, the same in every run.
func passage(collection string, i, words int) string {
	syllables := []string{
		"ba",
		"ce",
		"di",
		"fo",
		"gu",
		"ha",
		"je",
		"ki",
		"lo",
		"mu",
		"na",
		"pe",
		"ro",
		"su",
		"ta",
		"ve",
		"wi",
		"xo",
		"yu",
		"za",
	}
	seed := uint64(i)
	for _, c := range collection {
		seed = seed*31 + uint64(c)
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for w := range words {
		if w > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(syllables[rnd.IntN(len(syllables))])
		b.WriteString(syllables[rnd.IntN(len(syllables))])
	}
	return b.String()
}

// questions makes requests of a few passages each, of which some are wanted often and most seldom.
type questions struct {
	collection string
	passages   int
	words      int // of a passage
	most       int // passages of a request
	rnd        *rand.Rand
	asked      int
}

func newQuestions(collection string, seed uint64) *questions {
	return &questions{collection: collection, passages: 24, words: 40, most: 6, rnd: rand.New(rand.NewPCG(seed, 2))}
}

// next returns the blocks of the next request, best first, and its question.
func (q *questions) next() (blocks []contextpilot.Block, question string) {
	q.asked++
	n := 2 + q.rnd.IntN(q.most-1)
	taken := map[int]bool{}
	for len(blocks) < n {
		i := int(float64(q.passages) * q.rnd.Float64() * q.rnd.Float64()) // low numbers are wanted more often
		if taken[i] {
			continue
		}
		taken[i] = true
		blocks = append(blocks, contextpilot.Block{ID: fmt.Sprintf("%s%d", q.collection, i), Text: passage(q.collection, i, q.words)})
	}
	return blocks, fmt.Sprintf("Question %d of %s: what is said?", q.asked, q.collection)
}
