package llamacpp

// habits are how prompts lately came back to what slots hold. They decide which slot a prompt is pinned to. The server's own rule,
// see choose, takes any slot with a tenth of the prompt, also that of a conversation which only has the same system prompt.
type habits struct {
	// wentOn is, by age of the slot, the part of the prompts that went on from all it held, as a conversation's next turn does.
	wentOn []float64
}

// leastKeep is what a token that would be overwritten counts at least against one that would be computed. It does what the
// server's similarity does: a few common words are no reason to take a slot before older ones.
const leastKeep = 0.1

// learning is the number of prompts over which habits take their means, about.
const learning = 64

// age is the number of slots that are busy or were released later. The slot must be free.
func age(slots []slot, at int) int {
	n := 0
	for i := range slots {
		if slots[i].lease != nil || slots[i].used > slots[at].used {
			n++
		}
	}
	return n
}

// learn notes a prompt that is about to be sent.
func (h *habits) learn(slots []slot, prompt []token) {
	for len(h.wentOn) < len(slots) {
		h.wentOn = append(h.wentOn, 0)
	}
	for i := range h.wentOn {
		h.wentOn[i] -= h.wentOn[i] / learning
	}
	for i := range slots {
		held := slots[i].tokens
		if slots[i].lease == nil && len(held) > 0 && 10*common(held, prompt) >= 9*len(held) {
			h.wentOn[age(slots, i)] += 1.0 / learning
			return
		}
	}
}

// keep is what a token is worth that lies in a slot of an age: the part of prompts that went on from a slot as old, or older.
func (h *habits) keep(age int) float64 {
	sum := 0.0
	for i := age; i < len(h.wentOn); i++ {
		sum += h.wentOn[i]
	}
	return max(sum, leastKeep)
}

// place returns the free slot that a prompt is pinned to, -1 if none is free: the one released longest ago, unless another has so
// much more of the prompt that this outweighs what is overwritten there.
func (h *habits) place(slots []slot, prompt []token) int {
	oldest := choose(slots, nil, 0)
	if oldest < 0 {
		return -1
	}
	best, most := oldest, float64(slots[oldest].share(prompt))
	for i := range slots {
		if slots[i].lease != nil {
			continue
		}
		share := slots[i].share(prompt)
		lost := max(len(slots[i].tokens), slots[i].length) - share
		if worth := float64(share) - h.keep(age(slots, i))*float64(lost); worth > most {
			best, most = i, worth
		}
	}
	return best
}
