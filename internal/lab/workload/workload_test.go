package workload_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/lab/workload"
)

func named(t *testing.T, name string, change func(*workload.Options)) workload.Options {
	t.Helper()
	opt, err := workload.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&opt)
	}
	return opt
}

func generate(t rapid.TB, opt workload.Options) ([]trace.Request, *trace.Blocks) {
	t.Helper()
	requests, blocks, err := workload.Generate(opt)
	if err != nil {
		t.Fatal(err)
	}
	return requests, blocks
}

// TestGolden: the bytes are the same everywhere and for ever. A new hash here means that published figures must be made
// again.
func TestGolden(t *testing.T) {
	tests := []struct {
		name, want string
		opt        workload.Options
	}{
		{"zero options", "3650d05e61b41f0d5c58537020ec82d6", workload.Options{}},
		{
			"topics", "ea3c629727ffbee995819f7a6fc183ae",
			workload.Options{Seed: 1, Contexts: 500, Pool: 300, Topics: 20, Zipf: 1, KSpread: 3, Drift: 0.5, Bursts: 4},
		},
		{"odd zipf", "164818c79c513a0abac7dcfb88a448d3", workload.Options{Seed: 2, Contexts: 300, K: 5, Zipf: 0.83}},
		{"conversations", "8296d0b415d50e4bb309b1aea7ab3630", workload.Options{Seed: 3, Sessions: 60, Turns: 5, Tenants: 3, Zipf: 1}},
		{"overlap", "5ea3674f18dcf75e346bb8ebfec88e68", workload.Options{Seed: 4, Contexts: 300, Zipf: 1, Turns: 2, Overlap: new(0.55)}},
		{
			"nothing shared", "3313f15b4c7976274c99f1146a74cf42",
			workload.Options{Seed: 5, Contexts: 100, KSpread: 2, Tenants: 4, Turns: 3, Zipf: 1, Overlap: new(0.0)},
		},
		{"growing", "0bf81fe4368cb7b1bcc5dfcce9b2436a", workload.Options{Seed: 6, Contexts: 300, K: 20, Topics: 6, Growing: true}},
		{"ragcachepp", "a2894ec6265e39e11c42d81770c351b5", named(t, "ragcachepp", nil)},
		{"ragcachepp-small", "dcbf5029e42675265716942020779ea7", named(t, "ragcachepp-small", nil)},
		{"ragcachepp-disjoint", "2421e281f9744a1d19aa892a7b87b567", named(t, "ragcachepp-disjoint", nil)},
		{"ragcachepp-geo", "457eb7d1b6c864f351416326685fa15e", named(t, "ragcachepp-geo", nil)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := workload.New(tt.opt)
			if err != nil {
				t.Fatal(err)
			}
			h := sha256.New()
			w := trace.NewWriter(h)
			for q := range g.Requests() {
				err = errors.Join(err, w.WriteRequest(q))
			}
			for b := range g.Blocks() {
				err = errors.Join(err, w.WriteBlock(b))
			}
			if got := hex.EncodeToString(h.Sum(nil)[:16]); got != tt.want || err != nil {
				t.Errorf("%s: hash %s, want %s (%v)", tt.name, got, tt.want, err)
			}
		})
	}
}

// anyOptions draws options that can be met.
func anyOptions(t *rapid.T) workload.Options {
	opt := workload.Options{
		Seed:        rapid.Uint64().Draw(t, "seed"),
		Contexts:    rapid.IntRange(1, 120).Draw(t, "contexts"),
		K:           rapid.IntRange(1, 20).Draw(t, "k"),
		Zipf:        rapid.Float64Range(0, 3).Draw(t, "zipf"),
		Drift:       rapid.Float64Range(0, 1).Draw(t, "drift"),
		Bursts:      rapid.IntRange(0, 10).Draw(t, "bursts"),
		Tenants:     rapid.IntRange(1, 4).Draw(t, "tenants"),
		Turns:       rapid.IntRange(1, 5).Draw(t, "turns"),
		BlockTokens: 5,
	}
	opt.Turns = min(opt.Turns, opt.Contexts)
	opt.KSpread = rapid.IntRange(0, opt.K-1).Draw(t, "k-spread")
	most := opt.K + opt.KSpread
	if rapid.Bool().Draw(t, "with overlap") {
		opt.Overlap = new(rapid.Float64Range(0, 1).Draw(t, "overlap"))
		if *opt.Overlap < 0.1 {
			opt.Overlap = new(0.0)
		}
	}
	opt.Topics = rapid.IntRange(opt.Tenants, 3*opt.Tenants).Draw(t, "topics")
	if opt.Overlap == nil || *opt.Overlap > 0 {
		opt.Pool = rapid.IntRange(3*opt.Tenants*most, 10*opt.Tenants*most).Draw(t, "pool") // tenants have up to twice as many topics as others
		if opt.Growing = rapid.Bool().Draw(t, "growing"); opt.Growing {
			opt.Pool = max(opt.Pool, opt.Topics*(most+1))
		}
	}
	return opt
}

// TestProperties: what holds for all options.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opt := anyOptions(t)
		requests, blocks := generate(t, opt)
		if len(requests) != opt.Contexts {
			t.Fatalf("%d requests, want %d", len(requests), opt.Contexts)
		}
		turns := map[string]int{}
		owner := map[string]string{} // block -> tenant
		uses := map[string]int{}
		for _, q := range requests {
			if len(q.Docs) < opt.K-opt.KSpread || len(q.Docs) > opt.K+opt.KSpread {
				t.Errorf("%s has %d blocks", q.ID, len(q.Docs))
			}
			if turns[q.Session]++; q.Turn != turns[q.Session] || q.Turn > opt.Turns {
				t.Errorf("%s is turn %d, the session's number %d", q.ID, q.Turn, turns[q.Session])
			}
			tenant, _, _ := strings.Cut(q.Session, "s")
			seen := map[string]bool{}
			for _, id := range q.Docs {
				if _, ok := blocks.Text(id); !ok {
					t.Errorf("%s: block %s is not in the pool", q.ID, id)
				}
				if seen[id] {
					t.Errorf("%s: block %s twice", q.ID, id)
				}
				seen[id] = true
				if uses[id]++; opt.Overlap != nil && *opt.Overlap == 0 && uses[id] > 1 {
					t.Errorf("%s: block %s is shared", q.ID, id)
				}
				if other, ok := owner[id]; ok && other != tenant {
					t.Errorf("block %s belongs to %q and %q", id, other, tenant)
				}
				owner[id] = tenant
			}
		}
		again, _ := generate(t, opt)
		if diff := cmp.Diff(requests, again); diff != "" {
			t.Errorf("not the same again:\n%s", diff)
		}
	})
}

func TestErrors(t *testing.T) {
	geo := named(t, "ragcachepp-geo", nil)
	tests := []struct {
		name   string
		opt    workload.Options
		option string
		want   string
	}{
		{"pool below k", workload.Options{Pool: 10}, "pool", "pool 10: fewer blocks than the k 15 of one request"},
		{"pool below spread k", workload.Options{Pool: 20, KSpread: 6}, "pool", "pool 20: fewer blocks than the k 21 of one request"},
		{"pool of a tenant below k", workload.Options{Pool: 40, Tenants: 3, Topics: 3}, "pool", "pool 40: tenants 3 leave 13 blocks"},
		{"no block shared", workload.Options{Pool: 1000, Contexts: 100, Overlap: new(0.0)}, "pool", "needs 1500"},
		{"huge and not shared", workload.Options{Contexts: 1 << 27, Overlap: new(0.0)}, "pool", "want at most"},
		{"growing and not shared", workload.Options{Growing: true, Overlap: new(0.0)}, "overlap", "not together with growing"},
		{"growing without room", workload.Options{Growing: true, Pool: 100, Topics: 10}, "pool", "topics 10 have 10 each"},
		{"more topics than blocks", workload.Options{Pool: 50, Topics: 51}, "topics", "topics 51: more than the pool 50 has blocks"},
		{"more tenants than topics", workload.Options{Tenants: 3, Topics: 2}, "tenants", "tenants 3: more than topics 2"},
		{"k-spread", workload.Options{KSpread: 15}, "k-spread", "k-spread 15: must be less than k 15"},
		{"negative", workload.Options{K: -1}, "k", "k -1: want a number from 0"},
		{"too large", workload.Options{Contexts: 1<<27 + 1}, "contexts", "contexts 134217729"},
		{"too many turns", workload.Options{Sessions: 1 << 20, Turns: 1 << 20}, "sessions", "with turns 1048576"},
		{"sessions and turns", workload.Options{Contexts: 100, Sessions: 10, Turns: 5}, "sessions", "they have 10 turns each, not turns 5"},
		{"sessions without requests", workload.Options{Contexts: 5, Sessions: 10}, "sessions", "sessions 10: more than contexts 5"},
		{"overlap", workload.Options{Overlap: new(1.5)}, "overlap", "overlap 1.5: want a number from 0 to 1"},
		{"no number", workload.Options{Zipf: math.NaN()}, "zipf", "zipf NaN: want a number from 0 to 8"},
		{"drift", workload.Options{Drift: -0.5}, "drift", "drift -0.5: want a number from 0 to 1"},
		{
			"region too small", named(t, "ragcachepp", func(o *workload.Options) { o.K = 11 }), "pool",
			"topics 50 have 10 blocks each, fewer than k 11",
		},
		{"one region", named(t, "ragcachepp-disjoint", func(o *workload.Options) { o.Topics = 1 }), "topics", "need two"},
		{"zipf of cities", func() workload.Options { o := geo; o.Zipf = 1; return o }(), "zipf", "no such thing"},
		{"turns of cities", func() workload.Options { o := geo; o.Turns = 2; return o }(), "turns", "no such thing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := workload.New(tt.opt)
			if wrong, ok := errors.AsType[*workload.OptionError](err); !ok || wrong.Option != tt.option || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s: …%s…", err, tt.option, tt.want)
			}
		})
	}
	t.Run("name", func(t *testing.T) {
		if _, err := workload.Named("zebra"); err == nil || !strings.Contains(err.Error(), `"zebra"`) ||
			!strings.Contains(err.Error(), "ragcachepp-geo") {
			t.Error(err)
		}
	})
}

// TestLonger: a longer trace has the same blocks.
func TestLonger(t *testing.T) {
	opt := workload.Options{Contexts: 10, Pool: 300, Topics: 10}
	_, short := generate(t, opt)
	opt.Contexts = 100
	_, long := generate(t, opt)
	if diff := cmp.Diff(slices.Collect(short.All()), slices.Collect(long.All())); diff != "" {
		t.Error(diff)
	}
}

// TestOptions: a generator keeps its own options, and a walk may end early.
func TestOptions(t *testing.T) {
	overlap := 0.5
	g, err := workload.New(workload.Options{Overlap: &overlap})
	if err != nil {
		t.Fatal(err)
	}
	before := slices.Collect(g.Requests())
	overlap = 0.75
	if diff := cmp.Diff(before, slices.Collect(g.Requests())); diff != "" || len(before) != 1000 {
		t.Errorf("%d requests, changed by the caller's options:\n%s", len(before), diff)
	}
	for range g.Requests() {
		break
	}
	for range g.Blocks() {
		break
	}
}
