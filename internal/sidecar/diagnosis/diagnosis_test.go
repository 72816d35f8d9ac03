package diagnosis_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/diagnosis"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

func newMisses(t testing.TB, o diagnosis.Options) *diagnosis.Misses {
	t.Helper()
	if o.Bytes == 0 {
		o.Bytes = 8 << 20
	}
	m, err := diagnosis.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

var manual = strings.Repeat("Answer from the manual alone, and name the page that you have it from. ", 40)

// body is a request whose system text begins with a time.
func body(minute int, question string) []byte {
	raw, _ := json.Marshal(map[string]any{"model": "m", "messages": []map[string]any{
		{"role": "system", "content": fmt.Sprintf("It is 2026-05-04 %02d:%02d. %s", minute/60, minute%60, manual)},
		{"role": "user", "content": question},
	}})
	return raw
}

var answered = proxy.Ended{
	ID: "a", Computed: true, Prompt: -1, Cached: -1, Usage: cloudcache.Usage{Prompt: -1}, Theirs: proxy.ProviderMiss{Tokens: -1},
}

// pass sends a prompt and ends its answer at once.
func pass(m *diagnosis.Misses, tenant string, raw []byte, change func(*proxy.Ended)) {
	e := answered
	e.First = time.Now()
	if change != nil {
		change(&e)
	}
	m.Sent(proxy.SentPrompt{Tenant: tenant, Model: "m", Body: raw, Sent: time.Now()}).Ended(e)
}

func causesOf(d *dashboard.Misses) string {
	var names []string
	for _, x := range d.Last {
		names = append(names, x.Source+" "+x.Cause)
	}
	return strings.Join(names, ", ")
}

// Bodies that wait for the end of their answers have a bound; what is over it is counted, and the rest is compared.
func TestHeldBodies(t *testing.T) {
	m := newMisses(t, diagnosis.Options{Bytes: 1 << 20})
	var asked []proxy.Diagnosed
	raw := body(1, strings.Repeat("x ", 50<<10)) // 100 KiB, where 256 KiB are for bodies
	for range 5 {
		asked = append(asked, m.Sent(proxy.SentPrompt{Body: raw, Sent: time.Now()}))
	}
	for _, a := range asked {
		a.Ended(answered)
	}
	m.Wait()
	if d := m.Data(); d.Compared != 2 || d.Dropped != 3 {
		t.Fatalf("%d compared, %d dropped", d.Compared, d.Dropped)
	}
	pass(m, "", raw, nil) // there is room again
	failed := answered
	failed.Computed = false
	m.Sent(proxy.SentPrompt{Body: raw}).Ended(failed)
	m.Wait()
	if d := m.Data(); d.Compared != 3 || d.Dropped != 3 {
		t.Errorf("%d compared, %d dropped", d.Compared, d.Dropped)
	}
}

// All tenants together have a bound: the one that was not asked for longest is forgotten, and none is compared with another one.
func TestTenantsShareTheMemory(t *testing.T) {
	m := newMisses(t, diagnosis.Options{Bytes: 1 << 20})
	pass(m, "first", body(1, "q"), nil)
	pass(m, "second", body(2, "q"), nil)
	pass(m, "second", body(3, "q"), nil)
	m.Wait()
	if d := m.Data(); len(d.Last) != 1 || d.Last[0].Tenant != "second" {
		t.Fatalf("%+v", d.Last)
	}
	var long strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&long, "word%d ", i*i)
	}
	for i := range 60 {
		pass(m, fmt.Sprint("other", i), body(1, long.String()[:20<<10]+fmt.Sprint(i)), nil)
		m.Wait()
	}
	pass(m, "first", body(4, "q"), nil) // the first one was forgotten
	m.Wait()
	if d := m.Data(); len(d.Last) != 1 {
		t.Errorf("%+v", d.Last)
	}
}

// What a provider says is kept under our names, with its own word.
func TestProviderReasons(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMisses(t, diagnosis.Options{Provider: "anthropic", Registry: registry})
	for _, c := range []struct{ reason, cause string }{
		{"model_changed", "model"},
		{"prompt_cache_key_changed", "salt"},
		{"tools_changed", "tool-set"},
		{"system_changed", "template"},
		{"messages_changed", "edited-history"},
		{"input_changed", "edited-history"},
		{"context_compacted", "edited-history"},
		{"service_tier_changed", "other"},
		{"something new", "other"},
		{"unavailable", ""},
		{"previous_message_not_found", ""},
	} {
		before := len(m.Data().Last)
		pass(m, "", []byte(`{}`), func(e *proxy.Ended) { e.Theirs = proxy.ProviderMiss{Reason: c.reason, Tokens: 7} })
		last := m.Data().Last
		if c.cause == "" {
			if len(last) != before {
				t.Errorf("%s: %+v", c.reason, last[0])
			}
			continue
		}
		if len(last) != before+1 || last[0].Cause != c.cause || last[0].Reason != c.reason ||
			last[0].Source != "anthropic" || *last[0].Lost != 7 {
			t.Errorf("%s: %+v", c.reason, last)
		}
	}
	m.Wait()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "ragpilot_provider_misses_total" })
	if n := len(families[i].GetMetric()); n != 6 {
		t.Errorf("%d causes in the metric", n)
	}
}

// A prompt that was computed while the earlier one was could not find it in the cache: that is no miss of the engine.
func TestAtTheSameTime(t *testing.T) {
	for _, c := range []struct {
		later time.Duration // the second is sent behind the first's first byte
		want  string
	}{{-time.Millisecond, ""}, {time.Millisecond, "ragpilot other"}} {
		m := newMisses(t, diagnosis.Options{})
		now := time.Now()
		raw := body(1, "q")
		for i, sent := range []time.Time{now, now.Add(time.Second + c.later)} {
			e := answered
			e.ID, e.First, e.Prompt, e.Cached = fmt.Sprint(i), sent.Add(time.Second), 800, 0
			m.Sent(proxy.SentPrompt{Body: raw, Sent: sent}).Ended(e)
		}
		m.Wait()
		if got := causesOf(m.Data()); got != c.want {
			t.Errorf("%v: %q, want %q", c.later, got, c.want)
		}
	}
}

// Tokens are counted as the engine counts them: one that takes a token for each character has no more of the prompt in its cache.
func TestTokensOfTheEngine(t *testing.T) {
	m := newMisses(t, diagnosis.Options{})
	first, second := body(1, "Who wrote it?"), body(1, "And when was that?")
	pass(m, "", first, func(e *proxy.Ended) { e.Prompt, e.Cached = len(first), 0 })
	pass(m, "", second, func(e *proxy.Ended) { e.Prompt, e.Cached = len(second), len(second)-40 })
	m.Wait()
	if got := causesOf(m.Data()); got != "" {
		t.Errorf("%q: it had all", got)
	}
	pass(m, "", body(2, "Who wrote it?"), func(e *proxy.Ended) { e.Prompt, e.Cached = len(first), 16 })
	m.Wait()
	if d := m.Data(); causesOf(d) != "ragpilot clock" || *d.Last[0].Lost < 2000 {
		t.Errorf("%s, %+v", causesOf(d), d.Last)
	}
}

// The last misses have a bound, the sums have not.
func TestLastMisses(t *testing.T) {
	m := newMisses(t, diagnosis.Options{})
	for i := range 300 {
		e := answered
		e.ID, e.First = fmt.Sprint(i), time.Now()
		p := m.Sent(proxy.SentPrompt{Tenant: []string{"red", "blue"}[i%2], Session: fmt.Sprint("s", i%4), Body: body(i, "q"), Sent: time.Now()})
		p.Ended(e)
		m.Wait()
	}
	d := m.Data()
	if len(d.Last) != 200 || d.Last[0].ID != "299" || d.Last[199].ID != "100" || d.Causes[0].Misses != 298 {
		t.Fatalf("%d, %s to %s, %+v", len(d.Last), d.Last[0].ID, d.Last[len(d.Last)-1].ID, d.Causes)
	}
	if !m.Forget("red", "s2") || len(m.Data().Last) != 150 {
		t.Errorf("%d are left", len(m.Data().Last))
	}
	if m.Forget("red", "s2") || !m.Forget("red", "") || m.Forget("red", "") {
		t.Error("forgotten twice, or not at all")
	}
	pass(m, "blue", body(400, "q"), nil)
	m.Wait()
	if last := m.Data().Last; len(last) != 101 || last[0].ID != "a" || last[1].ID != "299" || last[100].ID != "101" {
		t.Errorf("%d, %s, %s to %s", len(last), last[0].ID, last[1].ID, last[len(last)-1].ID)
	}
}

// All of it at the same time; for the race detector. Every prompt is compared or dropped, also when it is closed meanwhile.
func TestConcurrent(t *testing.T) {
	m := newMisses(t, diagnosis.Options{})
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 50 {
				p := m.Sent(proxy.SentPrompt{Tenant: fmt.Sprint("t", w%3), EngineID: fmt.Sprint(w, i), Body: body(i, "q"), Sent: time.Now()})
				if w%2 == 0 {
					p.Miss()
				}
				e := answered
				e.First = time.Now()
				p.Ended(e)
				switch {
				case i%20 == 19:
					m.Forget(fmt.Sprint("t", w%3), "")
				case i%7 == 0:
					m.Evicted(fmt.Sprint("t", w%3), 0, fmt.Sprint(w, i))
					m.Emptied([]string{"m"})
				}
				m.Data()
			}
		})
	}
	all.Wait()
	_ = m.Close()
	pass(m, "", body(1, "q"), nil)
	if d := m.Data(); d.Compared+d.Dropped > 401 || d.Dropped == 0 {
		t.Errorf("%d compared, %d dropped", d.Compared, d.Dropped)
	}
}
