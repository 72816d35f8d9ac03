package contextpilot_test

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// reading takes "doc#3" apart.
func reading(b contextpilot.Block) (document string, place int) {
	document, number, _ := strings.Cut(b.ID, "#")
	place, _ = strconv.Atoi(number)
	return document, place
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limits contextpilot.Limits
		want   string
	}{
		"none":           {contextpilot.Limits{}, "a b c d e"},
		"displacement":   {contextpilot.Limits{MaxDisplacement: 1}, "d e b c a"},
		"pin":            {contextpilot.Limits{Pin: 2}, "e d a b c"},
		"pin everything": {contextpilot.Limits{Pin: 9}, "e d c b a"},
		"huge":           {contextpilot.Limits{MaxDisplacement: math.MaxInt}, "a b c d e"},
	} {
		p := newPilot(t, contextpilot.Config{Policy: "sorted", Limits: c.limits})
		equal(t, name, c.want, sent(p.Plan(contextpilot.Request{Blocks: blocks("e", "d", "c", "b", "a")})))
	}
	p := newPilot(t, contextpilot.Config{Policy: "sorted", Limits: contextpilot.Limits{KeepTopAtEnd: 2}})
	equal(t, "the best one last", "a b e d c", sent(p.Plan(contextpilot.Request{Blocks: blocks("c", "d", "e", "b", "a")})))
	p = newPilot(t, contextpilot.Config{Limits: contextpilot.Limits{Group: reading}})
	equal(t, "reading order, nothing else moved", "x#1 y x#2 z x#9", sent(p.Plan(contextpilot.Request{Blocks: blocks("x#9", "y", "x#1", "z",
		"x#2")})))
}

// PlanBatch keeps limits as Plan does, for continued conversations too, and its groups are of the orders that are sent.
func TestLimitsOfABatch(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Limits: contextpilot.Limits{KeepTopAtEnd: 1}})
	b, err := p.PlanBatch(context.Background(), []contextpilot.Request{
		{Session: "s", Prior: []string{"hello"}, Blocks: blocks("a", "b", "c")}, {Blocks: blocks("d", "e", "f")},
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "a continued conversation", "b c a", sent(b.Plans[0]))
	equal(t, "a first turn", "e f d", sent(b.Plans[1]))

	p = newPilot(t, contextpilot.Config{Limits: contextpilot.Limits{Pin: 1}})
	b, err = p.PlanBatch(context.Background(), []contextpilot.Request{{Blocks: blocks("p", "a", "b")}, {Blocks: blocks("q", "a", "b")}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "groups: nothing is shared", 2, len(b.Groups))
}

func TestBadLimits(t *testing.T) {
	for want, l := range map[string]contextpilot.Limits{
		"Limits.MaxDisplacement -1": {MaxDisplacement: -1},
		"Limits.Pin -2":             {Pin: -2},
		"Limits.KeepTopAtEnd -3":    {KeepTopAtEnd: -3},
		"Limits.KeepTopAtEnd 1":     {KeepTopAtEnd: 1, Pin: 1},
	} {
		if _, err := contextpilot.New(contextpilot.Config{Limits: l}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one that names %q", l, err, want)
		}
	}
}

// Whatever the policy and however long the index has lived, the limits hold and nothing is lost.
func TestLimitsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := contextpilot.Limits{
			MaxDisplacement: rapid.IntRange(0, 3).Draw(t, "displacement"),
			Pin:             rapid.IntRange(0, 3).Draw(t, "pin"),
		}
		if rapid.Bool().Draw(t, "group") {
			l.Group = reading
		}
		if l.MaxDisplacement == 0 && l.Pin == 0 && l.Group == nil {
			l.KeepTopAtEnd = rapid.IntRange(0, 3).Draw(t, "end")
		}
		p, err := contextpilot.New(contextpilot.Config{Policy: rapid.SampledFrom(contextpilot.PolicyNames()).Draw(t, "policy"), Limits: l})
		if err != nil {
			t.Fatal(err)
		}
		ids := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a#1", "a#2", "a#3", "b#1", "b#2", "c#1", "d", "e", "f"}), 0, 9,
			rapid.ID[string])
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			names := ids.Draw(t, "blocks")
			plan := p.Plan(contextpilot.Request{Blocks: blocks(names...)})
			if plan.Fault != nil {
				t.Fatal(plan.Fault)
			}
			order := strings.Fields(sent(plan))
			if !slices.Equal(slices.Sorted(slices.Values(order)), slices.Sorted(slices.Values(names))) {
				t.Fatalf("sent %v of %v", order, names)
			}
			keeps(t, l, names, order)
		}
	})
}

func keeps(t *rapid.T, l contextpilot.Limits, names, order []string) {
	base := slices.Clone(names) // ranks are those after the correction for reading order
	if l.Group != nil {
		slots := map[string][]int{}
		for i, n := range names {
			doc, _, _ := strings.Cut(n, "#")
			slots[doc] = append(slots[doc], i)
		}
		for doc, at := range slots {
			var parts []string
			for _, i := range at {
				parts = append(parts, names[i])
			}
			slices.Sort(parts)
			for n, i := range at {
				base[i] = parts[n]
			}
			last := ""
			for _, n := range order {
				if d, _, _ := strings.Cut(n, "#"); d == doc {
					if n < last {
						t.Fatalf("%v: %s stands behind %s", order, n, last)
					}
					last = n
				}
			}
		}
	}
	if l.KeepTopAtEnd > 0 {
		for i := range min(l.KeepTopAtEnd, len(names)) {
			if order[len(order)-1-i] != names[i] {
				t.Fatalf("%v: rank %d of %v is not at place %d from the end", order, i, names, i)
			}
		}
	}
	for at, n := range order {
		rank := slices.Index(base, n)
		if rank < l.Pin && at != rank {
			t.Fatalf("%v: %s is not pinned at %d", order, n, rank)
		}
		if d := at - rank; l.MaxDisplacement > 0 && max(d, -d) > l.MaxDisplacement {
			t.Fatalf("%v: %s stands %d places from its rank in %v", order, n, d, base)
		}
	}
}

// A path that keeps the limits is found although a longer one does not.
func TestPathsKeepLimits(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Limits: contextpilot.Limits{Pin: 1}})
	p.Plan(contextpilot.Request{Blocks: blocks("b", "c", "d", "a")})
	p.Plan(contextpilot.Request{Blocks: blocks("a", "d", "x")})
	plan := p.Plan(contextpilot.Request{Blocks: blocks("a", "b", "c", "d")})
	if got := sent(plan); !strings.HasPrefix(got, "a d") {
		t.Errorf("sent %s, want the resident a d in front", got)
	}
}
