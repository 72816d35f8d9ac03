package kvstore

import (
	"slices"
	"testing"
)

// all is a tier that has every page, and wants none.
type all struct{}

func (all) Has(ID) bool    { return true }
func (all) Wants(ID) bool  { return false }
func (all) Medium() string { return Disk }

// A page that is being loaded, and that another sequence comes to by generating the same tokens, is computed: what is loaded
// comes too late.
func TestComputedBeforeItIsLoaded(t *testing.T) {
	s := New(4, floats(PageTokens), all{})
	text := upTo(0, PageTokens+1)
	first := begin(t, s, text[:1], "")
	for i := 1; i < PageTokens; i++ {
		first.Append(text[i])
	}
	second := begin(t, s, text, "")
	loads := s.Loads()
	if len(loads) != 1 || second.Ready(100) != 0 {
		t.Fatalf("%d pages are loaded, %d tokens may be computed meanwhile", len(loads), second.Ready(100))
	}
	for i := range PageTokens {
		first.Pages()[0].Host[i] = 7
	}
	finish(t, first)
	s.Loaded(loads[0].Page, make([]float32, PageTokens))
	if n := second.Ready(100); n != 1 || slices.Contains(second.Pages()[0].Host, 0) || s.Stats().Loaded != 0 {
		t.Errorf("%d tokens may be computed behind a page of %v, %+v", n, second.Pages()[0].Host, s.Stats())
	}
	if events := s.Events(); len(events) != 1 {
		t.Errorf("events %v", events)
	}
}
