package cloudcache_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
)

// bench is a provider with a clock and a conversation.
type bench struct {
	t   testing.TB
	p   *cloudcache.Provider
	now time.Time
}

func newBench(t testing.TB, o cloudcache.Options) *bench {
	t.Helper()
	b := &bench{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	o.Now = func() time.Time { return b.now }
	b.p = provider(t, o)
	return b
}

// send sends a conversation of alternating user and assistant texts and reports what was read and written of it.
func (b *bench) send(tenant string, read, written int, texts ...string) cloudcache.Counts {
	b.t.Helper()
	body := conversation(texts...)
	u := cloudcache.Usage{Prompt: 10, Read: read, Written: written, Output: 1}
	path := path
	if b.p.Base().Host == "api.openai.com" {
		path = chat
		u.Prompt = read + written
	}
	return b.p.Answered(b.p.Sent(tenant, path, b.p.Mark(path, body)), u).Cache
}

func conversation(texts ...string) []byte {
	var messages []map[string]string
	for i, s := range texts {
		messages = append(messages, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": s})
	}
	body, _ := json.Marshal(map[string]any{"model": "m", "system": "s", "tools": []any{map[string]any{"name": "t"}}, "messages": messages})
	return body
}

func (b *bench) want(what string, want, got cloudcache.Counts) {
	b.t.Helper()
	want.TotalEntries = want.ActiveEntries
	ignore := cmpopts.IgnoreFields(cloudcache.Counts{}, "HitRate", "DefaultTTL", "DefaultTTLSeconds")
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		b.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// A turn's prompt is marked at other places than the turn before, and texts become blocks and texts again; the entries
// are recognised all the same, and live as long as somebody reads them.
func TestConversation(t *testing.T) {
	for _, c := range []struct {
		options cloudcache.Options
		ttl     time.Duration
	}{
		{cloudcache.Options{Provider: "anthropic"}, 5 * time.Minute},
		{cloudcache.Options{Provider: "anthropic", Extended: true}, time.Hour},
		{cloudcache.Options{Provider: "minimax", Extended: true}, 5 * time.Minute},
		{cloudcache.Options{Provider: "openai"}, time.Hour},
		{cloudcache.Options{Provider: "openai", Extended: true}, 24 * time.Hour},
	} {
		t.Run(fmt.Sprintf("%s %v", c.options.Provider, c.ttl), func(t *testing.T) {
			b := newBench(t, c.options)
			b.want("first turn", cloudcache.Counts{ActiveEntries: 1, CachedTokens: 2000, Misses: 1, Additions: 1},
				b.send("", 0, 2000, "a"))
			b.now = b.now.Add(c.ttl - 1)
			b.want("second turn", cloudcache.Counts{ActiveEntries: 2, CachedTokens: 2300, Hits: 1, Misses: 1, Additions: 2},
				b.send("", 2000, 300, "a", "b", "c"))
			b.now = b.now.Add(c.ttl - 1)
			b.want("third turn", cloudcache.Counts{ActiveEntries: 3, CachedTokens: 2400, Hits: 2, Misses: 1, Additions: 3},
				b.send("", 2300, 100, "a", "b", "c", "d", "e"))
			b.now = b.now.Add(c.ttl - 1)
			b.want("all live", cloudcache.Counts{
				ActiveEntries: 3, CachedTokens: 2400, Hits: 2, Misses: 1, Additions: 3,
			}, b.p.Stats("").Counts)
			b.now = b.now.Add(1)
			b.want("none lives", cloudcache.Counts{Hits: 2, Misses: 1, Additions: 3, Evictions: 3}, b.p.Stats("").Counts)
			b.want("written again", cloudcache.Counts{ActiveEntries: 1, CachedTokens: 2400, Hits: 2, Misses: 2, Additions: 4, Evictions: 3},
				b.send("", 0, 2400, "a", "b", "c", "d", "e"))
			if got := b.p.Stats("").DefaultTTLSeconds; got != int(c.ttl/time.Second) {
				t.Errorf("default TTL %d s, want %v", got, c.ttl)
			}
		})
	}
}

// What the provider has lost before its time is written anew, and counted once.
func TestLostEntries(t *testing.T) {
	b := newBench(t, cloudcache.Options{Provider: "anthropic"})
	b.send("", 0, 2000, "a")
	b.send("", 2000, 300, "a", "b", "c")
	b.want("all was lost", cloudcache.Counts{ActiveEntries: 1, CachedTokens: 2400, Hits: 1, Misses: 2, Additions: 3, Evictions: 2},
		b.send("", 0, 2400, "a", "b", "c", "d", "e"))

	b = newBench(t, cloudcache.Options{Provider: "anthropic"})
	b.send("", 0, 2000, "a")
	b.send("", 2000, 300, "a", "b", "c")
	b.want("the end was lost", cloudcache.Counts{ActiveEntries: 2, CachedTokens: 2400, Hits: 2, Misses: 1, Additions: 3, Evictions: 1},
		b.send("", 2000, 400, "a", "b", "c", "d", "e"))
	b.want("the same again is no new entry", cloudcache.Counts{
		ActiveEntries: 2, CachedTokens: 2400, Hits: 3, Misses: 1, Additions: 3, Evictions: 1,
	},
		b.send("", 2000, 400, "a", "b", "c", "d", "e"))
}

func TestUnknownUsage(t *testing.T) {
	b := newBench(t, cloudcache.Options{Provider: "anthropic"})
	b.want("nothing is known", cloudcache.Counts{}, b.send("", -1, -1, "a"))
	b.want("too short to be cached", cloudcache.Counts{}, b.send("", 0, 0, "a"))
	h := b.p.Sent("", path, []byte(`{"messages":"q"}`))
	r := b.p.Answered(h, cloudcache.Usage{Prompt: 5, Read: 2, Written: 3})
	if r.Read != 2 || r.Written != 3 || r.Cache.Hits != 1 || r.Cache.ActiveEntries != 0 {
		t.Errorf("a body that was not understood: %+v", r)
	}
}

// OpenAI caches without saying what it writes.
func TestOpenAIUsage(t *testing.T) {
	b := newBench(t, cloudcache.Options{Provider: "openai"})
	body := conversation("a")
	answered := func(prompt, read, written int) cloudcache.Result {
		return b.p.Answered(b.p.Sent("", chat, body), cloudcache.Usage{Prompt: prompt, Read: read, Written: written})
	}
	if r := answered(1023, 0, -1); r.Written != 0 || r.Cache.ActiveEntries != 0 || r.Cache.Misses != 0 {
		t.Errorf("too short: %+v", r)
	}
	if r := answered(2000, 0, -1); r.Written != 0 || r.Cache.CachedTokens != 2000 || r.Cache.Misses != 1 {
		t.Errorf("first: %+v", r)
	}
	if r := answered(2000, 1920, -1); r.Written != 80 || r.Cache.ActiveEntries != 1 || r.Cache.Hits != 1 {
		t.Errorf("second: %+v", r)
	}
	if r := answered(2000, 0, 1500); r.Written != 1500 || r.Cache.CachedTokens != 1500 {
		t.Errorf("a model that says what it writes: %+v", r)
	}
	if r := answered(2000, -1, -1); r.Written != 0 || r.Read != 0 || r.Cache.Misses != 2 || r.Cache.Hits != 1 {
		t.Errorf("nothing is known: %+v", r)
	}
}

// The time of an entry is what the request asks for, whether the client or the proxy asked.
func TestClientsOwnTimes(t *testing.T) {
	system := func(control string) string {
		return `{"system":[{"type":"text","text":"s","cache_control":` + control + `}],"messages":[{"role":"user","content":"q"}]}`
	}
	for _, c := range []struct {
		provider, path, body string
		want                 time.Duration
	}{
		{"anthropic", path, system(`{"type":"ephemeral"}`), 5 * time.Minute},
		{"anthropic", path, system(`{"type":"ephemeral","ttl":"5m"}`), 5 * time.Minute},
		{"anthropic", path, system(`{"type":"ephemeral","ttl":"1h"}`), time.Hour},
		{"anthropic", path, `{"cache_control":{"ttl":"1h"},"messages":[{"role":"user","content":"q"}]}`, time.Hour},
		{"anthropic", path, `{"tools":[{"name":"t","cache_control":{"ttl":"1h"}}],"messages":[{"role":"user","content":"q"}]}`, time.Hour},
		{"openai", chat, `{"messages":[{"role":"user","content":"q"}]}`, time.Hour},
		{"openai", "/v1/responses", `{"input":"q","prompt_cache_retention":"24h"}`, 24 * time.Hour},
	} {
		b := newBench(t, cloudcache.Options{Provider: c.provider})
		u := cloudcache.Usage{Prompt: 2000, Written: 2000}
		b.p.Answered(b.p.Sent("", c.path, []byte(c.body)), u)
		b.now = b.now.Add(c.want - 1)
		if n := b.p.Stats("").ActiveEntries; n != 1 {
			t.Errorf("%s: %d entries just before %v", c.body, n, c.want)
		}
		b.now = b.now.Add(1)
		if n := b.p.Stats("").ActiveEntries; n != 0 {
			t.Errorf("%s: %d entries after %v", c.body, n, c.want)
		}
		// An answer may take longer than the entry lives.
		h := b.p.Sent("", c.path, []byte(c.body))
		b.now = b.now.Add(c.want)
		if n := b.p.Answered(h, u).Cache.ActiveEntries; n != 0 {
			t.Errorf("%s: %d entries after a long answer", c.body, n)
		}
	}
}

func TestTenants(t *testing.T) {
	b := newBench(t, cloudcache.Options{Provider: "anthropic"})
	b.send("one", 0, 2000, "a")
	b.want("another tenant's same prompt is its own", cloudcache.Counts{ActiveEntries: 1, CachedTokens: 2000, Misses: 1, Additions: 1},
		b.send("two", 0, 2000, "a"))
	b.want("an unknown tenant", cloudcache.Counts{}, b.p.Stats("").Counts)
	b.want("all", cloudcache.Counts{ActiveEntries: 2, CachedTokens: 4000, Misses: 2, Additions: 2}, b.p.Total().Counts)
	for i := range 2000 { // more tenants than have counts of their own
		b.send(fmt.Sprint(i), 0, 10, "a")
	}
	b.want("forgotten", cloudcache.Counts{}, b.p.Stats("one").Counts)
	b.want("the last", cloudcache.Counts{ActiveEntries: 1, CachedTokens: 10, Misses: 1, Additions: 1}, b.p.Stats("1999").Counts)
	b.want("all", cloudcache.Counts{ActiveEntries: 2002, CachedTokens: 24000, Misses: 2002, Additions: 2002}, b.p.Total().Counts)
	b.now = b.now.Add(time.Hour)
	b.want("the end", cloudcache.Counts{Misses: 2002, Additions: 2002, Evictions: 2002}, b.p.Total().Counts)
}

func TestMaxEntries(t *testing.T) {
	b := newBench(t, cloudcache.Options{Provider: "anthropic", MaxEntries: 2})
	b.send("", 0, 1, "a")
	b.now = b.now.Add(time.Second)
	b.send("", 0, 10, "b")
	b.now = b.now.Add(time.Second)
	b.send("", 300, 0, "a") // read
	b.want("the one that was read stays", cloudcache.Counts{
		ActiveEntries: 2, CachedTokens: 101, Hits: 1, Misses: 3, Additions: 3, Evictions: 1,
	},
		b.send("", 0, 100, "c"))
}

// The counts agree with the entries, whatever happens.
func TestCountsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		now := time.Unix(0, 0)
		p, err := cloudcache.New(cloudcache.Options{Provider: "anthropic", MaxEntries: limit, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		var open []cloudcache.Handle
		tenants := []string{"", "t"}
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				texts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 1, 5).Draw(t, "texts")
				tenant := rapid.SampledFrom(tenants).Draw(t, "tenant")
				open = append(open, p.Sent(tenant, path, p.Mark(path, conversation(texts...))))
			},
			"answer": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip("nothing was sent")
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				number := rapid.SampledFrom([]int{-1, 0, 1, 100, 1000})
				p.Answered(open[i], cloudcache.Usage{Prompt: 1, Read: number.Draw(t, "read"), Written: number.Draw(t, "written")})
				open = append(open[:i], open[i+1:]...)
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) {
				all := p.Total()
				sum := cloudcache.Counts{DefaultTTL: all.DefaultTTL, DefaultTTLSeconds: all.DefaultTTLSeconds, HitRate: all.HitRate}
				for _, tenant := range tenants {
					c := p.Stats(tenant)
					if c.ActiveEntries != c.Additions-c.Evictions || c.ActiveEntries < 0 || c.CachedTokens < c.ActiveEntries ||
						c.ActiveEntries == 0 && c.CachedTokens != 0 {
						t.Fatalf("%q: %+v", tenant, c)
					}
					for i := range 7 { // ActiveEntries to Additions
						n := reflect.ValueOf(&sum).Elem().Field(i)
						n.SetInt(n.Int() + reflect.ValueOf(c.Counts).Field(i).Int())
					}
				}
				if sum != all.Counts || all.ActiveEntries > limit {
					t.Fatalf("total %+v, sum %+v, limit %d", all, sum, limit)
				}
			},
		})
	})
}

func TestConcurrentUse(t *testing.T) {
	p := provider(t, cloudcache.Options{Provider: "anthropic", MaxEntries: 50, Prices: map[string]cloudcache.Price{"*": {Input: 1}}})
	const n = 200
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			tenant := fmt.Sprint(g % 3)
			for i := range n {
				body := p.Mark(path, conversation(fmt.Sprint(i%20), "b", fmt.Sprint(g)))
				p.Answered(p.Sent(tenant, path, body), cloudcache.Usage{Prompt: 1, Read: i % 2, Written: 5})
				p.Stats(tenant)
				p.Total()
				p.Headers().Set("X-Api-Key", tenant) // the caller's own
				p.Base().Path = tenant
			}
		})
	}
	wg.Wait()
	if c := p.Total(); c.Hits+c.Misses != 8*n || c.ActiveEntries > 50 || p.Base().Path != "" {
		t.Errorf("%+v", c)
	}
}

// Members and their order are those of the recordings, but for the account, which is ours.
func TestJSON(t *testing.T) {
	p := provider(t, cloudcache.Options{Provider: "anthropic"})
	const counts = `"active_entries":0,"total_entries":0,"total_cached_tokens":0,"total_hits":0,"total_misses":0,` +
		`"total_evictions":0,"total_additions":0,"hit_rate_pct":0,"default_ttl":"5m","default_ttl_seconds":300`
	for _, c := range []struct {
		v    any
		want string
	}{
		{p.Stats(""), `{` + counts + `,"provider":"anthropic","account":{"requests":0,"silent":0,"plain_tokens":0,"read_tokens":0,` +
			`"written_tokens":0,"written_1h_tokens":0,"output_tokens":0}}`},
		{
			p.Answered(cloudcache.Handle{}, cloudcache.Usage{Read: -1, Written: -1}),
			`{"provider":"anthropic","cache_creation_tokens":0,"cache_read_tokens":0,"ttl_stats":{` + counts + `}}`,
		},
	} {
		if got, err := json.Marshal(c.v); err != nil || string(got) != c.want {
			t.Errorf("%s %v, want %s", got, err, c.want)
		}
	}
}

// Of a conversation with 40 results of some 2,500 characters.
func BenchmarkMark(b *testing.B) {
	p, body := provider(b, cloudcache.Options{Provider: "anthropic"}), agent(40)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		p.Mark(path, body)
	}
}

func BenchmarkSent(b *testing.B) {
	p := provider(b, cloudcache.Options{Provider: "anthropic"})
	body := p.Mark(path, agent(40))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		p.Answered(p.Sent("", path, body), cloudcache.Usage{Prompt: 1, Read: 10, Written: 1})
	}
}

func agent(results int) []byte {
	text := strings.Repeat("some words of a result\n", 110)
	messages := []any{map[string]any{"role": "user", "content": "do it"}}
	for i := range results {
		id := fmt.Sprint(i)
		messages = append(messages,
			map[string]any{
				"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": id, "name": "t", "input": map[string]any{}}},
			},
			map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": text}}})
	}
	body, _ := json.Marshal(map[string]any{"model": "m", "system": text, "messages": messages})
	return body
}
