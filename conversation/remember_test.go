package conversation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/base/budget"
)

// Whatever is sent and forgotten: all that is remembered is reached through what is remembered, in a list in which turns
// stand behind those before them, and weighs as much as it says.
func TestMemo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 6000).Draw(t, "limit")
		b := budget.New(int64(limit))
		m := newMemo(b, "")
		sessions := []*session{nil, {}, {}}
		conversation := func(t *rapid.T) (chains []chain) {
			c := firstChain("", "", "")
			for _, word := range rapid.SliceOfN(rapid.IntRange(0, 2), 1, 6).Draw(t, "items") {
				c = nextChain(c, Sum{Lo: uint64(word)})
				chains = append(chains, c)
			}
			return chains
		}
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				by := rapid.IntRange(0, len(sessions)-1).Draw(t, "by")
				chains := conversation(t)
				last, known := m.longest(chains, sessions[by])
				if known > 0 && last.chain != chains[known-1] {
					t.Fatal("another conversation's link")
				}
				for i, c := range chains[known:] {
					if rapid.IntRange(0, 9).Draw(t, "forgotten meanwhile") == 0 && by > 0 {
						m.forget(sessions[by])
						sessions[by] = new(session)
						var other *link // the same beginning, sent again
						for _, c := range chains[:rapid.IntRange(0, len(chains)).Draw(t, "sent again")] {
							other = m.add(&link{chain: c, before: other}, nil)
						}
					}
					last = m.add(&link{chain: c, before: last, edits: []edit{{with: strings.Repeat("x", 10*i)}}}, sessions[by])
				}
			},
			"forget": func(t *rapid.T) {
				by := rapid.IntRange(1, len(sessions)-1).Draw(t, "session")
				m.forget(sessions[by])
				for _, e := range m.entries.All() {
					if e.owner == sessions[by] && !e.shared {
						t.Fatal("a link of a forgotten session is remembered")
					}
				}
				sessions[by] = new(session)
			},
			"": func(t *rapid.T) { checkMemo(t, m, b) },
		})
	})
}

func checkMemo(t *rapid.T, m *memo, b *budget.Budget) {
	before, bytes := map[*link]bool{nil: true}, 0
	for _, e := range m.entries.All() {
		l := e.link
		if !before[l.before] {
			t.Fatal("a link is remembered, and the one before it is not, or stands behind it")
		}
		before[l] = true
		bytes += l.weight()
	}
	if held := b.Held(""); int64(bytes) != held || held > b.Limit() {
		t.Fatalf("%d links of %d bytes, counted as %d, of %d", m.entries.Len(), bytes, held, b.Limit())
	}
}

// Ends of conversations go before their beginnings, and what was not sent for longest before the rest.
func TestMemoEvictsEnds(t *testing.T) {
	probe := (&link{}).weight()
	m := newMemo(budget.New(int64(5*probe)), "")
	send := func(words ...string) {
		c, chains := firstChain("", "", ""), []chain{}
		for _, w := range words {
			c = nextChain(c, xxh3.HashString128(w))
			chains = append(chains, c)
		}
		last, known := m.longest(chains, nil)
		for _, c := range chains[known:] {
			last = m.add(&link{chain: c, before: last}, nil)
		}
	}
	remembered := func(words ...string) bool {
		c := firstChain("", "", "")
		for _, w := range words {
			c = nextChain(c, xxh3.HashString128(w))
		}
		return m.entries.Has(c)
	}
	send("s", "a", "b")
	send("s", "x", "y")
	send("t") // six turns
	got := fmt.Sprint(remembered("s", "a"), remembered("s", "a", "b"), remembered("s", "x", "y"), remembered("t"))
	if got != "true false true true" {
		t.Errorf("remembered: a %s (want true false true true)", got)
	}
	long := []string{"u"}
	for i := range 10 {
		long = append(long, fmt.Sprint(i))
	}
	send(long...)
	if !remembered("u") || !remembered(long[:5]...) || remembered(long...) {
		t.Error("of a conversation that is too long, its beginning should be remembered")
	}
}
