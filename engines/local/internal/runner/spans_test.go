package runner

import "testing"

// TestObserversComeInBlocks: however small the steps are, what looks at the blocks comes in whole blocks of rows, which add up
// to the same bits.
func TestObserversComeInBlocks(t *testing.T) {
	for limit := 16; limit < 70; limit++ {
		a := &assembly{tokens: make([]int32, 200), tail: 101, prompt: 173, phase: observing, todo: []int{3, 4, 5, 40, 99, 100}}
		for i := a.tail; i < a.prompt; i++ {
			a.todo = append(a.todo, i)
		}
		next := a.tail
		for a.done < len(a.todo) {
			spans, n := a.spans(limit, 1)
			if n == 0 || n > limit {
				t.Fatalf("limit %d: %d tokens", limit, n)
			}
			for _, s := range spans {
				if s.Position < a.tail {
					continue
				}
				if s.Position != next || (s.Position-a.tail)%16 != 0 {
					t.Fatalf("limit %d: tokens from %d on, want %d", limit, s.Position, next)
				}
				next += len(s.Tokens)
			}
			a.done += n
		}
		if next != a.prompt {
			t.Errorf("limit %d: %d tokens looked", limit, next-a.tail)
		}
	}
}
