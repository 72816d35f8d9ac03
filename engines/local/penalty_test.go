package local

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
)

// The values are worked out by hand from the definitions in transformers: a logit below 0 is multiplied, another one divided, once
// for each token of prompt and answer; a token is forbidden that would complete an n-gram a second time.
func TestPenalties(t *testing.T) {
	off := float32(math.Inf(-1))
	for _, c := range []struct {
		name       string
		repetition float64
		ngram      int
		prompt     []int32
		want       []float32
	}{
		{"off", 1, 0, []int32{0, 1, 2}, []float32{4, -4, 0, 8, -8}},
		{"each token once", 2, 0, []int32{0, 0, 1, 2, 0}, []float32{2, -8, 0, 8, -8}},
		{"below 1 favours", .5, 0, []int32{0, 1}, []float32{8, -2, 0, 8, -8}},
		{"unigrams", 1, 1, []int32{3, 1, 3}, []float32{4, off, 0, off, -8}},
		{"bigrams", 1, 2, []int32{1, 3, 1, 4, 0, 1}, []float32{4, -4, 0, off, off}},
		{"trigrams", 1, 3, []int32{1, 2, 3, 4, 1, 2}, []float32{4, -4, 0, off, -8}},
		{"trigrams that overlap", 1, 3, []int32{0, 0, 0}, []float32{off, -4, 0, 8, -8}},
		{"other beginning", 1, 3, []int32{1, 2, 3, 4, 0, 2}, []float32{4, -4, 0, 8, -8}},
		{"prompt shorter than an n-gram", 1, 5, []int32{1, 1, 1}, []float32{4, -4, 0, 8, -8}},
		{"longer than anything", 1, math.MaxInt, []int32{1, 1, 1}, []float32{4, -4, 0, 8, -8}},
		{"both", 2, 2, []int32{3, 0, 3}, []float32{off, -4, 0, 4, -8}},
	} {
		p, err := newPenalties(&c.repetition, &c.ngram, c.prompt)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		logits := []float32{4, -4, 0, 8, -8}
		p.wrap(greedy)(logits)
		if !slices.Equal(logits, c.want) {
			t.Errorf("%s: %v, want %v", c.name, logits, c.want)
		}
	}
}

// Tokens of the answer count, too.
func TestPenaltiesOfAnswer(t *testing.T) {
	answer := func(repetition float64, ngram int) (tokens []int32) {
		p, err := newPenalties(&repetition, &ngram, []int32{4})
		if err != nil {
			t.Fatal(err)
		}
		sample := p.wrap(greedy)
		for range 4 {
			tokens = append(tokens, sample([]float32{7, 6, 3, 2, 1}))
		}
		return tokens
	}
	if got, want := answer(1, 0), []int32{0, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("without: %v, want %v", got, want)
	}
	if got, want := answer(2, 0), []int32{0, 1, 0, 0}; !slices.Equal(got, want) { // 7; 3.5 < 6; 3.5 > 3 and 3
		t.Errorf("repetition_penalty 2: %v, want %v", got, want)
	}
	if got, want := answer(1, 1), []int32{0, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("no_repeat_ngram_size 1: %v, want %v", got, want)
	}
	if got, want := answer(1, 2), []int32{0, 0, 1, 0}; !slices.Equal(got, want) { // 0 0, then 0 1, then 1 0
		t.Errorf("no_repeat_ngram_size 2: %v, want %v", got, want)
	}
}

func TestPenaltiesRefused(t *testing.T) {
	for _, bad := range []float64{0, -1, .009, 101, math.NaN(), math.Inf(1)} {
		if _, err := newPenalties(&bad, nil, []int32{0}); !errors.Is(err, engines.ErrRefused) {
			t.Errorf("repetition_penalty %g: error %v", bad, err)
		}
	}
	below := -1
	if _, err := newPenalties(nil, &below, []int32{0}); !errors.Is(err, engines.ErrRefused) {
		t.Errorf("no_repeat_ngram_size -1: error %v", err)
	}
}
