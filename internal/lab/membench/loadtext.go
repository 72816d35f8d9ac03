package membench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
)

// loadText makes facts that differ. It is safe for concurrent use.
type loadText struct {
	mu   sync.Mutex
	g    generator       // guarded by mu
	seen map[string]bool // guarded by mu
}

func newLoadText(seed uint64) *loadText {
	return &loadText{g: generator{rand: rand.New(rand.NewPCG(seed, math.MaxUint64))}, seen: map[string]bool{}}
}

// next returns a fact with a date, unlike all before.
func (l *loadText) next() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		f := l.g.fact(&texts().Patterns[l.g.rand.IntN(len(texts().Patterns))])
		text := fmt.Sprintf("%d %s %d: %s", 1+l.g.rand.IntN(28), l.g.one("months"), 1990+l.g.rand.IntN(36), f.text)
		if !l.seen[text] {
			l.seen[text] = true
			return text
		}
	}
}

// questions returns the questions of all patterns in a random order.
func (l *loadText) questions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for i := range texts().Patterns {
		all = append(all, l.g.fact(&texts().Patterns[i]).ask...)
	}
	l.g.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// unit brings a vector to length 1.
func unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	scale := float32(1 / math.Sqrt(max(sum, math.SmallestNonzeroFloat64)))
	for i := range v {
		v[i] *= scale
	}
	return v
}
