package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func newPilot(t testing.TB, cfg contextpilot.Config) *contextpilot.Pilot {
	t.Helper()
	return testkit.Must(contextpilot.New(cfg))(t)
}

func passages(ids ...string) []contextpilot.Block {
	var out []contextpilot.Block
	for _, id := range ids {
		out = append(out, contextpilot.Block{ID: id, Text: "What " + id + " says.", Tokens: 120})
	}
	return out
}

// ExamplePictureOf draws what three prompts share.
func ExamplePictureOf() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		panic(err)
	}
	scope := contextpilot.Scope{Model: "m"}
	for _, ids := range [][]string{{"intro", "setup", "faq"}, {"setup", "intro", "limits"}, {"other"}} {
		pilot.Plan(contextpilot.Request{Scope: scope, Blocks: passages(ids...)})
	}
	pic, _ := dashboard.PictureOf(pilot, scope, 10)
	fmt.Printf("%d prompts, %d tokens in %d blocks\n", pic.Live, pic.Tokens, pic.Blocks)
	for _, p := range pic.Parts {
		fmt.Printf("%sup to token %d: %d\n", strings.Repeat("  ", p.End/120-1), p.End, p.Requests)
	}
	// Output:
	// 3 prompts, 611 tokens in 5 blocks
	// up to token 120: 2
	//   up to token 240: 2
	//     up to token 360: 1
	//     up to token 360: 1
	// up to token 120: 1
}

// Whatever was sent and is gone, the picture shows what a slow count of the live prompts' beginnings shows, and the
// parts are those that a choice one by one takes.
func TestPictureCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pilot, err := contextpilot.New(contextpilot.Config{Policy: "retrieval", Dedup: contextpilot.DedupOff})
		if err != nil {
			t.Fatal(err)
		}
		scope := contextpilot.Scope{Model: "m", Tenant: "t"}
		live := map[string][]string{}
		for i := range rapid.IntRange(1, 12).Draw(t, "requests") {
			id := fmt.Sprint("r", i)
			path := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 4, rapid.ID[string]).Draw(t, "blocks")
			var blocks []contextpilot.Block
			for _, name := range path {
				blocks = append(blocks, contextpilot.Block{ID: name, Tokens: tokensOf(name)})
			}
			pilot.Plan(contextpilot.Request{ID: id, Scope: scope, Blocks: blocks})
			live[id] = path
			if rapid.Bool().Draw(t, "gone") {
				pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Scope: scope, Request: id})
				delete(live, id)
			}
		}
		counts := map[string]int{} // requests by beginning
		for _, path := range live {
			for n := range path {
				counts[strings.Join(path[:n+1], "")]++
			}
		}
		n := rapid.IntRange(0, 8).Draw(t, "n")
		pic, ok := dashboard.PictureOf(pilot, scope, n)
		tokens := 0
		for beginning := range counts {
			tokens += tokensOf(beginning[len(beginning)-1:])
		}
		want := dashboard.Picture{Live: len(live), Tokens: tokens, Parts: pic.Parts}
		if n > 0 {
			want.Seen, want.Blocks = len(live), len(counts)
		}
		if diff := cmp.Diff(want, pic); diff != "" || !ok {
			t.Fatalf("%v %s", ok, diff)
		}
		if len(pic.Parts) != min(n, len(counts)) {
			t.Fatalf("%d parts of %d, asked for %d", len(pic.Parts), len(counts), n)
		}
		for i, p := range pic.Parts {
			from := 0
			if p.Parent >= 0 {
				from = pic.Parts[p.Parent].End
			}
			if p.Parent >= i || p.End-from != p.Tokens || p.Requests < 1 {
				t.Fatalf("part %d: %+v", i, p)
			}
		}
		shown := map[string]bool{}
		for i := range pic.Parts {
			shown[beginning(t, pic.Parts, i, counts)] = true
		}
		// Whoever always takes the largest of what is behind that taken before, takes nodes by the smallest on their path.
		least, most := 1<<30, 0
		for beginning := range counts {
			size := 1 << 30
			for n := range beginning {
				size = min(size, tokensOf(beginning[n:n+1])*counts[beginning[:n+1]])
			}
			if shown[beginning] {
				least = min(least, size)
			} else {
				most = max(most, size)
			}
		}
		if n > 0 && least < most {
			t.Fatalf("one of %d is left out, and one of %d is there: %v", most, least, shown)
		}
	})
}

// tokensOf is different for each block, so that its length identifies it.
func tokensOf(name string) int { return map[string]int{"a": 16, "b": 48, "c": 5, "d": 7}[name] }

// beginning returns the blocks of a part by their lengths, and checks its requests.
func beginning(t *rapid.T, parts []dashboard.Part, i int, counts map[string]int) string {
	text := ""
	for at := i; at >= 0; at = parts[at].Parent {
		for _, name := range []string{"a", "b", "c", "d"} {
			if parts[at].Tokens == tokensOf(name) {
				text = name + text
			}
		}
	}
	if counts[text] != parts[i].Requests {
		t.Fatalf("%q: %d requests, want %d", text, parts[i].Requests, counts[text])
	}
	return text
}

// A large index is shown as its latest requests see it, within the bounds.
func TestPictureIsBounded(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{Policy: "retrieval", Capacity: 1 << 30})
	for r := range 3000 {
		var list []contextpilot.Block
		for b := range 10 {
			list = append(list, contextpilot.Block{ID: fmt.Sprint(r*b%1000, "-", b), Tokens: 10})
		}
		pilot.Plan(contextpilot.Request{Blocks: list})
	}
	pic, ok := dashboard.PictureOf(pilot, contextpilot.Scope{}, 1024)
	if !ok || pic.Live != 3000 || pic.Capacity != 1<<30 || pic.Seen != 1638 || pic.Blocks > 16384 || len(pic.Parts) != 1024 {
		t.Errorf("%d live, capacity %d, %d seen in %d blocks, %d parts", pic.Live, pic.Capacity, pic.Seen, pic.Blocks, len(pic.Parts))
	}
	again, _ := dashboard.PictureOf(pilot, contextpilot.Scope{}, 1024)
	if diff := cmp.Diff(pic, again); diff != "" {
		t.Errorf("looking changes something: %s", diff)
	}
}

// Scopes share nothing in a picture either, and the ones in use come first.
func TestPictureOfEachScope(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	pilot := newPilot(t, contextpilot.Config{Now: func() time.Time { return now }})
	if got := pilot.Scopes(); len(got) != 0 {
		t.Errorf("before any request: %v", got)
	}
	a, b := contextpilot.Scope{Model: "m", Tenant: "a"}, contextpilot.Scope{Model: "m", Tenant: "b"}
	for _, s := range []contextpilot.Scope{a, b, b, a} {
		now = now.Add(time.Minute)
		pilot.Plan(contextpilot.Request{Scope: s, Blocks: passages("of "+s.Tenant, "both")})
	}
	if diff := cmp.Diff([]contextpilot.Scope{a, b}, pilot.Scopes()); diff != "" {
		t.Error(diff)
	}
	names := map[string]string{}
	for _, s := range pilot.Scopes() {
		pic, ok := dashboard.PictureOf(pilot, s, 9)
		if !ok || pic.Live != 2 || pic.Blocks != 2 {
			t.Errorf("%v: %+v", s, pic)
		}
		if other, met := names[pic.Parts[0].Name]; met {
			t.Errorf("%s's first block is %s's, too", s.Tenant, other)
		}
		names[pic.Parts[0].Name] = s.Tenant
	}
	if _, ok := dashboard.PictureOf(pilot, contextpilot.Scope{Tenant: "c"}, 9); ok {
		t.Error("a picture of nothing")
	}
	if n := len(pilot.Scopes()); n != 2 {
		t.Errorf("%d scopes after looking", n)
	}
}

func BenchmarkPicture(b *testing.B) {
	for _, live := range []int{100, 10_000} {
		p := newPilot(b, contextpilot.Config{Policy: "retrieval"})
		for r := range live {
			var list []contextpilot.Block
			for i := range 15 {
				list = append(list, contextpilot.Block{ID: fmt.Sprint(r%(i+2), "-", i), Tokens: 200})
			}
			p.Plan(contextpilot.Request{Blocks: list})
		}
		for _, n := range []int{0, 64} {
			b.Run(fmt.Sprintf("live=%d/n=%d", live, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					dashboard.PictureOf(p, contextpilot.Scope{}, n)
				}
			})
		}
	}
}
