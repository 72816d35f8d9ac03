package prefixdiff_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/prefixdiff"
)

func index(t testing.TB, cfg prefixdiff.Config) *prefixdiff.Index {
	t.Helper()
	x, err := prefixdiff.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// sentence returns a made-up sentence of words that say nothing.
func sentence(r *rand.Rand) string {
	words := strings.Fields("river paper garden winter doctor mountain kitchen because without another slowly never bridge " +
		"summer village quickly bottle")
	n := 6 + r.IntN(12)
	out := make([]string, n)
	for i := range out {
		out[i] = words[r.IntN(len(words))]
	}
	return strings.Join(out, " ") + ". "
}

func paragraph(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(sentence(r))
	}
	return b.String()
}

// TestStable: conversations that go on, beside others of the same program and of other programs, lose nothing.
func TestStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		x, err := prefixdiff.New(prefixdiff.Config{KeepTexts: rapid.Bool().Draw(t, "texts")})
		if err != nil {
			t.Fatal(err)
		}
		type conversation struct{ system, messages string }
		systems := []string{paragraph(r, 20), paragraph(r, 5), paragraph(r, 1)}
		open := make([]conversation, 4)
		for range rapid.IntRange(1, 40).Draw(t, "requests") {
			c := &open[r.IntN(len(open))]
			if c.system == "" || r.IntN(8) == 0 {
				*c = conversation{system: systems[r.IntN(len(systems))]}
			} else {
				c.messages += fmt.Sprintf(`,{"role":"assistant","content":%q}`, paragraph(r, 1+r.IntN(9)))
			}
			c.messages += fmt.Sprintf(`,{"role":"user","content":%q}`, paragraph(r, 1+r.IntN(9)))
			body := fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":%q}%s]}`, c.system, c.messages)
			p, err := prefixdiff.Parse([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			if f, ok := x.Add(p); ok {
				t.Fatalf("%+v in %s", f, body)
			}
		}
	})
}

// TestBestEarlier: of many earlier prompts the one with the longest common prefix is named, and Common counts it.
func TestBestEarlier(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	system, long := paragraph(r, 10), paragraph(r, 30)
	x := index(t, prefixdiff.Config{})
	for i := range 50 {
		x.Add(parse(t, chat(system, "", fmt.Sprintf("%s question %d", long[:i*20], i))))
	}
	q := x.Prepare(parse(t, chat(system, "", long+"the end")))
	q.Insert()
	if f, ok := q.Explain(); ok {
		t.Errorf("%+v", f)
	}
	all := parse(t, chat(system, "", long[:49*20])).Tokens()
	if n := q.Common(); n < all-2 || n > all+1 {
		t.Errorf("common: %d of about %d tokens", n, all)
	}
}

func TestSeen(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	system := paragraph(r, 20)
	first, second := chat(system, "", "one"), chat(system, "", "two")
	clocks := [2]string{chat("It is 04:14:05. "+system, "", "one"), chat("It is 04:15:09. "+system, "", "one")}
	n := parse(t, first).Tokens()
	for _, c := range []struct {
		name        string
		first, then prefixdiff.Seen
		bodies      [2]string
		cause       prefixdiff.Cause
	}{
		{"nothing is known", prefixdiff.Seen{}, prefixdiff.Seen{}, [2]string{first, second}, ""},
		{"it was there", prefixdiff.Seen{}, prefixdiff.Seen{Cached: n - 16, Known: true}, [2]string{first, second}, ""},
		{"it was not there", prefixdiff.Seen{}, prefixdiff.Seen{Known: true}, [2]string{first, second}, prefixdiff.Other},
		{"evicted", prefixdiff.Seen{}, prefixdiff.Seen{Known: true, Evicted: true}, [2]string{first, second}, prefixdiff.Evicted},
		{"evicted, and yet there", prefixdiff.Seen{}, prefixdiff.Seen{Known: true, Cached: n - 16, Evicted: true}, [2]string{first, second}, ""},
		{
			"another replica",
			prefixdiff.Seen{Replica: "a"},
			prefixdiff.Seen{Known: true, Replica: "b"},
			[2]string{first, second},
			prefixdiff.Replica,
		},
		{"the same replica", prefixdiff.Seen{Replica: "a"}, prefixdiff.Seen{Known: true, Replica: "a"}, [2]string{first, second}, prefixdiff.Other},
		{"below a block", prefixdiff.Seen{}, prefixdiff.Seen{BlockSize: 784}, [2]string{first, second}, prefixdiff.BelowBlock},
		{"a difference", prefixdiff.Seen{}, prefixdiff.Seen{Known: true}, clocks, prefixdiff.Clock},
		{"a difference that cost nothing", prefixdiff.Seen{}, prefixdiff.Seen{Known: true, Cached: n}, clocks, ""},
	} {
		x := index(t, prefixdiff.Config{})
		x.Observe(parse(t, c.bodies[0]), c.first)
		f, ok := x.Observe(parse(t, c.bodies[1]), c.then)
		if ok != (c.cause != "") || f.Cause != c.cause {
			t.Errorf("%s: %v %+v, want %q", c.name, ok, f, c.cause)
		}
	}
}

// TestBounded: an index that forgets still answers, and finds what is recent.
func TestBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	x := index(t, prefixdiff.Config{MaxBytes: 256 << 10})
	for range 500 {
		x.Add(parse(t, chat(paragraph(r, 20), "", paragraph(r, 3))))
	}
	system := paragraph(r, 20)
	x.Add(parse(t, chat("It is 04:14:05. "+system, "", "Hi")))
	if f, ok := x.Add(parse(t, chat("It is 04:15:09. "+system, "", "Hi"))); !ok || f.Cause != prefixdiff.Clock {
		t.Errorf("%v %+v", ok, f)
	}
	if _, err := prefixdiff.New(prefixdiff.Config{MaxBytes: -1}); err == nil {
		t.Error("a negative bound is accepted")
	}
}

// Where a tool is new, the text that stood in its place is none of its own.
func TestQuotesOfOneKind(t *testing.T) {
	x := index(t, prefixdiff.Config{KeepTexts: true})
	system := paragraph(rand.New(rand.NewPCG(1, 1)), 10)
	x.Add(parse(t, chat(system, "", "Hi")))
	f, ok := x.Add(parse(t, chat(system, `[{"type":"function","function":{"name":"f"}}]`, "Hi")))
	if !ok || f.Cause != prefixdiff.ToolSet || f.Was != "" || !strings.Contains(f.Is, `"name":"f"`) {
		t.Errorf("%v %+v", ok, f)
	}
}

func TestConcurrent(t *testing.T) {
	x := index(t, prefixdiff.Config{MaxBytes: 1 << 20, KeepTexts: true})
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g%2), 1))
			system := paragraph(r, 10)
			for i := range 40 {
				x.Observe(parse(t, chat(fmt.Sprintf("Turn %d of %d. ", i, g)+system, "", paragraph(r, 3))), prefixdiff.Seen{Known: i%2 == 0})
			}
		})
	}
	group.Wait()
}

func TestPrices(t *testing.T) {
	money, wait := prefixdiff.Prices{Input: 3, Cached: 0.3, Speed: 2000}.Cost(1_000_000)
	if money != 2.7 || wait.Seconds() != 500 {
		t.Error(money, wait)
	}
}

func FuzzAdd(f *testing.F) {
	for _, c := range plantedCases {
		f.Add(c.first, c.second)
	}
	f.Add(`[{"role":"user","parts":[{"type":"text","text":"a"}]}]`, `{"contents":[{"parts":[{"functionCall":{"name":"a","args":{"b":[1,{}]}}}]}],"tools":[{"functionDeclarations":[{}]}]}`)
	f.Add(`{"input":[{"type":"function_call","arguments":"{"},{"type":"reasoning"}],"model":"m"}`, `{"prompt":[1,2,3]}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		for _, cfg := range []prefixdiff.Config{{}, {KeepTexts: true}} {
			x := index(t, cfg)
			for i, body := range []string{first, second, first} {
				p, err := prefixdiff.Parse([]byte(body))
				if err != nil {
					p = prefixdiff.FromText(body)
				}
				found, ok := x.Add(p)
				if !ok {
					continue
				}
				if i == 2 {
					t.Fatalf("sent before: %+v", found)
				}
				if found.Against >= i || found.Number != i || found.LostTokens < 0 || found.Token < 0 || found.Token > p.Tokens() || found.Cause == "" {
					t.Fatalf("request %d: %+v", i, found)
				}
			}
		}
	})
}

// BenchmarkAdd compares requests of 8,000 tokens: one that goes on, and one with a clock at its beginning, in an index of so many others.
func BenchmarkAdd(b *testing.B) {
	for _, earlier := range []int{10, 1000} {
		for _, disease := range []string{"", "It is 04:%02d:%02d. "} {
			name := "stable"
			if disease != "" {
				name = "clock"
			}
			b.Run(fmt.Sprintf("%s/%d", name, earlier), func(b *testing.B) {
				r := rand.New(rand.NewPCG(9, 10))
				x := index(b, prefixdiff.Config{MaxBytes: 256 << 20})
				system := paragraph(r, 200)
				body := func(i int) prefixdiff.Prompt {
					front := system
					if disease != "" {
						front = fmt.Sprintf(disease, i/60%60, i%60) + system
					}
					return parse(b, chat(front, "", paragraph(r, 200)))
				}
				for i := range earlier {
					x.Add(body(i))
				}
				b.ReportAllocs()
				i := earlier
				for b.Loop() {
					b.StopTimer()
					p := body(i)
					i++
					b.StartTimer()
					x.Add(p)
				}
			})
		}
	}
}
