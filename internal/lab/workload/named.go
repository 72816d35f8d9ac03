package workload

import "fmt"

// rule says who draws the requests.
type rule int

const (
	ruleTopics rule = iota
	ruleRegions
	ruleDisjoint
	ruleCities
)

// Names returns what [Named] knows.
func Names() []string {
	return []string{"topics", "ragcachepp", "ragcachepp-small", "ragcachepp-disjoint", "ragcachepp-geo"}
}

// Named returns the options of a workload that has a name. Apart from "topics" they are those of the RAGCache++
// paper; its draws have no Zipf, drift, tenants, turns or k-spread.
//
//	topics               the generator of this package with its defaults and Zipf 1
//	ragcachepp           Section 4.1, larger setup: 200 queries in bursts of 10, k 5, 50 regions of 10 blocks of 200 tokens, overlap 0.6
//
// ragcachepp-small     Section 4.1, smaller setup, which is also that of the overlap sweep in Section 4.4 (set Overlap): 100
// queries, 10 regions
//
//	ragcachepp-disjoint  Section 4.4, the control: consecutive queries from different regions
//	ragcachepp-geo       Section 4.7: 200 queries, 20 cities of 10 blocks
//
// Sizes are those of the paper's Appendix A.
func Named(name string) (Options, error) {
	o := Options{K: 5, BlockTokens: 200, EqualBlocks: true}
	switch name {
	case "topics":
		return Options{Zipf: 1}, nil
	case "ragcachepp":
		o.rule, o.Contexts, o.Pool, o.Topics, o.Bursts, o.Overlap = ruleRegions, 200, 500, 50, 10, new(0.6)
	case "ragcachepp-small":
		o.rule, o.Contexts, o.Pool, o.Topics, o.Bursts, o.Overlap = ruleRegions, 100, 100, 10, 10, new(0.6)
	case "ragcachepp-disjoint":
		o.rule, o.Contexts, o.Pool, o.Topics = ruleDisjoint, 100, 100, 10
	case "ragcachepp-geo":
		o.rule, o.Contexts, o.Pool, o.Topics = ruleCities, 200, 200, 20
	default:
		return o, fmt.Errorf("%q: want one of %v", name, Names())
	}
	return o, nil
}

// check refuses options that a named workload has no use for. A region's blocks are all that a query of it can get.
func (r rule) check(o *Options) error {
	if r == ruleTopics {
		return nil
	}
	for _, x := range []struct {
		name  string
		value any
		used  bool
	}{
		{"zipf", o.Zipf, o.Zipf != 0},
		{"drift", o.Drift, o.Drift != 0},
		{"tenants", o.Tenants, o.Tenants != 1},
		{"turns", o.Turns, o.Turns != 1},
		{"k-spread", o.KSpread, o.KSpread != 0},
		{"growing", o.Growing, o.Growing},
		{"bursts", o.Bursts, o.Bursts > 1 && r != ruleRegions},
		{"overlap", orZero(o.Overlap), o.Overlap != nil && r != ruleRegions},
	} {
		if x.used {
			return bad(x.name, x.value, "the chosen workload has no such thing")
		}
	}
	if r == ruleDisjoint && o.Topics < 2 {
		return bad("topics", o.Topics, "consecutive requests from different regions need two")
	}
	if each := o.Pool / o.Topics; each < o.K {
		return bad("pool", o.Pool, "topics %d have %d blocks each, fewer than k %d", o.Topics, each, o.K)
	}
	return nil
}
