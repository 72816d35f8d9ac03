package local

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// sampler returns what chooses the tokens of one answer.
func sampler(temperature, topP *float64, seed *int64) (func([]float32) int32, error) {
	t, p := 0.0, 1.0
	if temperature != nil {
		t = *temperature
	}
	if topP != nil {
		p = *topP
	}
	if !(t >= 0 && t <= 100) {
		return nil, refused("temperature %g: want 0 to 100", t)
	}
	if !(p > 0 && p <= 1) {
		return nil, refused("top_p %g: want more than 0, to 1", p)
	}
	if t == 0 {
		return greedy, nil
	}
	source := rand.NewPCG(rand.Uint64(), rand.Uint64())
	if seed != nil {
		source = rand.NewPCG(uint64(*seed), 0)
	}
	n := &nucleus{temperature: t, topP: p, random: rand.New(source)}
	return n.sample, nil
}

// greedy is the token with the largest logit, of equal ones the first.
func greedy(logits []float32) int32 {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	return int32(best)
}

// nucleus draws a token by its probability, from the smallest set of the most probable ones that together have topP (A. Holtzman et
// al., The Curious Case of Neural Text Degeneration, 2020). The same seed and the same logits give the same tokens.
type nucleus struct {
	temperature, topP float64
	random            *rand.Rand
	choices           []choice
}

// choice is a token, and its probability times some number.
type choice struct {
	token  int32
	weight float64
}

func (n *nucleus) sample(logits []float32) int32 {
	most, sum := float64(slices.Max(logits)), 0.0
	n.choices = n.choices[:0]
	for i, v := range logits {
		w := math.Exp((float64(v) - most) / n.temperature)
		n.choices = append(n.choices, choice{int32(i), w})
		sum += w
	}
	if n.topP < 1 {
		sum = n.cut(sum)
	}
	return n.draw(sum)
}

// cut leaves the smallest set of the most probable tokens that together have topP of sum, the most probable first, and returns what
// they have.
func (n *nucleus) cut(sum float64) float64 {
	// A token of the set and those that are not more probable have more than 1 − topP together. So most tokens need not be sorted:
	// those for which all would not be enough if they were as probable. Half of that, for rounding.
	least := (1 - n.topP) * sum / float64(len(n.choices)) / 2
	n.choices = slices.DeleteFunc(n.choices, func(c choice) bool { return c.weight < least })
	slices.SortFunc(n.choices, func(a, b choice) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.token, b.token))
	})
	part := 0.0
	for i, c := range n.choices {
		if part += c.weight; part >= n.topP*sum {
			n.choices = n.choices[:i+1]
			break
		}
	}
	return part
}

// draw chooses one of the tokens, whose weights have a sum.
func (n *nucleus) draw(sum float64) int32 {
	at, last := n.random.Float64()*sum, n.choices[0].token
	for _, c := range n.choices {
		if c.weight == 0 {
			continue
		}
		last = c.token
		if at -= c.weight; at < 0 {
			break
		}
	}
	return last
}
