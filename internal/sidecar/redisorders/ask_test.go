package redisorders

import (
	"context"
	"testing"

	"github.com/ragpilot/ragpilot/internal/prompt/orders"
)

// What Redis was asked for before a tenant was forgotten, and answers after that, is not remembered.
func TestAnAnswerFromBeforeForgetIsNotKept(t *testing.T) {
	s, err := Open(Options{URL: "redis://localhost"}) // not asked
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, forgotten := range []bool{false, true} {
		var k orders.Key
		proceed := make(chan struct{})
		result := s.start(func(_ context.Context, forgets uint64) ([]int, error) {
			<-proceed
			return s.keep(forgets, "", k, []int{1, 0}), nil
		})
		if forgotten {
			s.forgetLocally("")
		}
		close(proceed)
		if a := <-result; a.err != nil || len(a.order) != 2 {
			t.Fatalf("answer: %+v", a)
		}
		if _, ok := s.memory.Get(t.Context(), "", k); ok == forgotten {
			t.Errorf("forgotten %v, found %v", forgotten, ok)
		}
	}
}
