package dashboard_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
)

// watch is a clock that tests set.
type watch struct{ now time.Time }

func (w *watch) time() time.Time { return w.now }

func request(id string, prompt, cached int) dashboard.Detail {
	return dashboard.Detail{Request: dashboard.Request{ID: id, PromptTokens: new(prompt), CachedTokens: new(cached)}}
}

func ids(d dashboard.Data) (out []string) {
	for _, q := range d.Requests {
		out = append(out, q.ID)
	}
	return out
}

func TestRecentKeepsTheLast(t *testing.T) {
	r := dashboard.NewRecent(dashboard.Options{Requests: 3})
	for i := range 5 {
		r.Add(request(fmt.Sprint(i), 10, 5))
		if _, ok := r.Request(fmt.Sprint(i)); !ok {
			t.Errorf("request %d is not kept", i)
		}
	}
	d := r.Data()
	if got := ids(d); !slices.Equal(got, []string{"4", "3", "2"}) {
		t.Errorf("%v", got)
	}
	if _, ok := r.Request("1"); ok {
		t.Error("request 1 is still kept")
	}
	if d.Totals.Requests != 5 || d.Totals.PromptTokens != 50 || *d.Totals.HitRatio != .5 {
		t.Errorf("%+v", d.Totals)
	}
}

func TestRecentTellsEqualIDsApart(t *testing.T) {
	r := dashboard.NewRecent(dashboard.Options{Requests: 4})
	for i, id := range []string{"a~3", "a", "a", "", ""} {
		r.Add(request(id, 10, i))
	}
	got := ids(r.Data())
	if !slices.Equal(got, []string{"~5", "~4", "a~4", "a"}) {
		t.Errorf("%v", got)
	}
	for i, id := range slices.Backward(got) {
		if d, ok := r.Request(id); !ok || *d.CachedTokens != 4-i {
			t.Errorf("%s: %v %v", id, d, ok)
		}
	}
	again := dashboard.NewRecent(dashboard.Options{Requests: 1})
	for range 3 {
		again.Add(request("a", 1, 1))
	}
	if _, ok := again.Request("a"); !ok {
		t.Error("the only one that is kept has another ID")
	}
}

func TestRecentSamples(t *testing.T) {
	w := &watch{noon.Add(3 * time.Second)}
	r := dashboard.NewRecent(dashboard.Options{Samples: 4, Interval: 10 * time.Second, Now: w.time})
	r.Add(request("", 100, 20))
	r.Add(request("", 100, 60))
	held := request("", 1000, 100)
	held.HeldOut = true
	r.Add(held)
	w.now = noon.Add(10 * time.Second)
	r.Add(dashboard.Detail{}) // whose answer named no tokens
	w.now = noon.Add(35 * time.Second)
	r.Add(request("", 50, 50))
	want := []dashboard.Sample{
		{At: noon, Requests: 2, PromptTokens: 200, CachedTokens: 80},
		{At: noon.Add(10 * time.Second), Requests: 1},
		{At: noon.Add(30 * time.Second), Requests: 1, PromptTokens: 50, CachedTokens: 50},
	}
	d := r.Data()
	if !slices.Equal(d.Samples, want) {
		t.Errorf("%v", d.Samples)
	}
	if *d.Totals.HitRatio != 130./250 || *d.Totals.HeldOutHitRatio != .1 || d.Totals.HeldOut != 1 {
		t.Errorf("%+v", d.Totals)
	}
	w.now = noon.Add(40 * time.Second)
	if got := r.Data().Samples; !slices.Equal(got, want[1:]) {
		t.Errorf("an old sample is shown: %v", got)
	}
	r.Add(request("", 8, 4))
	if got := r.Data().Samples; len(got) != 3 ||
		got[2] != (dashboard.Sample{At: noon.Add(40 * time.Second), Requests: 1, PromptTokens: 8, CachedTokens: 4}) {
		t.Errorf("%v", got)
	}
	w.now = noon.Add(time.Hour)
	if got := r.Data().Samples; len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestRecentTimes(t *testing.T) {
	r := dashboard.NewRecent(dashboard.Options{})
	if r.Data().Totals.TTFT != nil {
		t.Error("times without requests")
	}
	for i := range 100 {
		d := dashboard.Detail{}
		d.TTFT = new(float64(100-i) / 100)
		r.Add(d)
	}
	slow := dashboard.Detail{}
	slow.TTFT, slow.HeldOut = new(99.0), true
	r.Add(slow)
	slow.HeldOut, slow.Failed = false, true
	r.Add(slow)
	r.Add(dashboard.Detail{})
	if got := *r.Data().Totals.TTFT; got != (dashboard.Quantiles{P50: .5, P95: .95, Count: 100}) {
		t.Errorf("%+v", got)
	}
}

func TestRecentSessions(t *testing.T) {
	r := dashboard.NewRecent(dashboard.Options{})
	for i, who := range []string{"t1 a", "t1 b", "t2 a", "t1 a"} {
		d := request("", 10, i)
		d.Tenant, d.Session, _ = strings.Cut(who, " ")
		d.At = noon.Add(time.Duration(i) * time.Second)
		r.Add(d)
	}
	r.Add(dashboard.Detail{}) // of no session
	want := []dashboard.Session{
		{ID: "a", Tenant: "t1", Last: noon.Add(3 * time.Second), Requests: 2, PromptTokens: 20, CachedTokens: 3},
		{ID: "a", Tenant: "t2", Last: noon.Add(2 * time.Second), Requests: 1, PromptTokens: 10, CachedTokens: 2},
		{ID: "b", Tenant: "t1", Last: noon.Add(time.Second), Requests: 1, PromptTokens: 10, CachedTokens: 1},
	}
	if got := r.Data().Sessions; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// large is a request that is too large in everything.
func large() dashboard.Detail {
	long := strings.Repeat("é", 1<<19)
	d := dashboard.Detail{Request: dashboard.Request{ID: "x" + long, Tenant: long, Session: long, Path: long, Model: long}}
	d.Before, d.After = &dashboard.Text{Text: "x" + long}, &dashboard.Text{Text: long, Bytes: 5 << 20}
	d.Orders, d.Stages = make([]dashboard.Order, 1000), make([]dashboard.Stage, 1000)
	for i := range d.Orders {
		d.Orders[i], d.Stages[i] = dashboard.Order{Where: long, Sent: make([]int, 2000)}, dashboard.Stage{Name: long}
	}
	return d
}

func TestRecentClips(t *testing.T) {
	r := dashboard.NewRecent(dashboard.Options{TextBytes: 1000})
	if !r.Texts() || !r.Data().Texts {
		t.Error("texts are not kept")
	}
	r.Add(large())
	d, ok := r.Request(r.Data().Requests[0].ID)
	if !ok {
		t.Fatal("not kept")
	}
	if len(d.Before.Text) != 999 || d.Before.Bytes != 1+1<<20 || len(d.After.Text) != 1000 || d.After.Bytes != 5<<20 {
		t.Errorf("%d of %d, %d of %d", len(d.Before.Text), d.Before.Bytes, len(d.After.Text), d.After.Bytes)
	}
	if !utf8.ValidString(d.Before.Text) || !utf8.ValidString(d.ID) || len(d.ID) != 127 || len(d.Tenant) != 128 {
		t.Errorf("%d %d", len(d.ID), len(d.Tenant))
	}
	if len(d.Stages) != 16 || len(d.Stages[0].Name) != 128 || len(d.Orders) != 8 || len(d.Orders[0].Sent) != 128 ||
		len(d.Orders[0].Where) != 128 {
		t.Errorf("%d %d", len(d.Stages), len(d.Orders))
	}
	r.Add(dashboard.Detail{Request: dashboard.Request{ID: strings.Repeat("\x80", 500)}})
	if got := len(r.Data().Requests[0].ID); got < 120 {
		t.Errorf("what is no text is clipped to %d bytes", got)
	}
}

func TestRecentDropsTexts(t *testing.T) {
	r := dashboard.NewRecent(dashboard.Options{})
	d := request("a", 1, 1)
	d.Before, d.After = &dashboard.Text{Text: "secret"}, &dashboard.Text{Text: "secret"}
	r.Add(d)
	if got, _ := r.Request("a"); got.Before != nil || got.After != nil || r.Texts() || r.Data().Texts {
		t.Errorf("%+v", got)
	}
}

// TestRecentMemory adds what is much larger than the bound and looks at the heap.
func TestRecentMemory(t *testing.T) {
	const requests, bytes = 20, 2000
	r := dashboard.NewRecent(dashboard.Options{Requests: requests, TextBytes: bytes, Samples: 10})
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	for range 3 * requests {
		d := large()
		d.Engine = fmt.Sprint(r.Data().Totals.Requests) + d.Model
		r.Add(d)
	}
	const bound = requests*(2*bytes+16<<10) + 65*10*64
	if grown := heap() - before; grown > bound {
		t.Errorf("%d bytes more, at most %d are said", grown, bound)
	}
	runtime.KeepAlive(r)
}

func TestRecentTakesCopies(t *testing.T) {
	r := dashboard.NewRecent(dashboard.Options{TextBytes: 100})
	d := request("a", 10, 5)
	d.Before, d.Orders, d.Stages = &dashboard.Text{Text: "old"}, []dashboard.Order{{Sent: []int{1}}}, []dashboard.Stage{{Name: "old"}}
	r.Add(d)
	*d.CachedTokens, d.Before.Text, d.Orders[0].Sent[0], d.Stages[0].Name = 9, "new", 2, "new"
	got, _ := r.Request("a")
	if *got.CachedTokens != 5 || got.Before.Text != "old" || got.Orders[0].Sent[0] != 1 || got.Stages[0].Name != "old" {
		t.Errorf("%+v", got)
	}
}

func TestRecentConcurrently(t *testing.T) {
	r := dashboard.NewRecent(dashboard.Options{Requests: 16, Samples: 2, Interval: time.Millisecond, TextBytes: 10})
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for i := range 300 {
				d := request(fmt.Sprint(n, i%20), 10, 5)
				d.Before = &dashboard.Text{Text: "text"}
				r.Add(d)
			}
		})
		all.Go(func() {
			for range 100 {
				d := r.Data()
				if len(d.Requests) > 16 || len(d.Samples) > 2 {
					t.Errorf("%d requests, %d samples", len(d.Requests), len(d.Samples))
				}
				for _, q := range d.Requests {
					r.Request(q.ID)
				}
			}
		})
	}
	all.Wait()
	d := r.Data()
	if d.Totals.Requests != 1200 || d.Totals.PromptTokens != 12000 || len(d.Requests) != 16 {
		t.Errorf("%+v, %d kept", d.Totals, len(d.Requests))
	}
	if slices.Sort(ids(d)); len(slices.Compact(ids(d))) != 16 {
		t.Errorf("an ID twice: %v", ids(d))
	}
}

// Each engine has samples of its own; requests held out or in shadow mode are not among them.
func TestRecentWatchesEngines(t *testing.T) {
	w := &watch{noon}
	r := dashboard.NewRecent(dashboard.Options{Samples: 3, Now: w.time})
	add := func(engine string, prompt, cached int, change func(*dashboard.Request)) {
		d := request("", prompt, cached)
		d.Engine = engine
		if change != nil {
			change(&d.Request)
		}
		r.Add(d)
	}
	add("a", 100, 50, nil)
	add("b", 100, 10, nil)
	add("", 100, 100, nil)
	add("a", 100, 100, func(q *dashboard.Request) { q.HeldOut = true })
	add("a", 100, 100, func(q *dashboard.Request) { q.Shadow = true })
	w.now = w.now.Add(10 * time.Second)
	add("a", 100, 70, nil)
	if got := r.Samples("a"); len(got) != 2 || got[0].CachedTokens != 50 || got[1].CachedTokens != 70 || *r.HitRatio("a") != .6 {
		t.Errorf("%+v %v", got, *r.HitRatio("a"))
	}
	if got := r.Samples("b"); len(got) != 1 || *r.HitRatio("b") != .1 {
		t.Errorf("%+v", got)
	}
	if r.Samples("c") != nil || r.HitRatio("c") != nil {
		t.Error("an engine without requests")
	}
	w.now = w.now.Add(time.Hour)
	if got := r.Samples("a"); got != nil {
		t.Errorf("an hour later: %+v", got)
	}
	for i := range 100 {
		add(fmt.Sprint(i), 1, 1, nil)
	}
	if r.HitRatio("a") != nil || r.HitRatio("99") == nil {
		t.Error("engines are not bounded")
	}
}

// What shadow mode would have done is summed apart, and its hits are in no ratio of planned requests.
func TestRecentCountsShadowApart(t *testing.T) {
	r := dashboard.NewRecent(dashboard.Options{})
	r.Add(request("planned", 100, 60))
	for _, held := range []bool{false, true} {
		d := request("", 100, 20)
		d.Shadow, d.HeldOut, d.LeftOut, d.Replaced, d.CharsSaved = true, held, 2, 3, 40
		r.Add(d)
	}
	got := r.Data().Totals
	if got.Requests != 3 || got.PromptTokens != 100 || *got.HitRatio != .6 || got.HeldOut != 0 {
		t.Errorf("%+v", got)
	}
	if s := got.Shadow; s.Requests != 2 || *s.HitRatio != .2 || s.LeftOut != 4 || s.Replaced != 6 || s.CharsSaved != 80 {
		t.Errorf("%+v", s)
	}
}

// Texts of who is forgotten are not kept; those of others are, and all figures.
func TestForget(t *testing.T) {
	long := strings.Repeat("x", 200)
	all := []string{"a/1", "a/2", "b/1", "b/" + long}
	for _, c := range []struct {
		tenant, session string
		want            []string
	}{
		{"a", "1", all[1:]},
		{"a", "", all[2:]},
		{"c", "", all},
		{"b", long, all[:3]}, // a name that is not kept whole
	} {
		r := dashboard.NewRecent(dashboard.Options{TextBytes: 100})
		for _, who := range all {
			tenant, session, _ := strings.Cut(who, "/")
			r.Add(
				dashboard.Detail{
					Request: dashboard.Request{ID: who[:3], Tenant: tenant, Session: session},
					Before:  &dashboard.Text{Text: who},
					After:   &dashboard.Text{Text: who},
				},
			)
		}
		if n := r.Forget(c.tenant, c.session); n != len(all)-len(c.want) {
			t.Errorf("%+v: %d texts forgotten", c, n)
		}
		var got []string
		for _, who := range all {
			d, ok := r.Request(who[:3])
			if !ok || (d.Before == nil) != (d.After == nil) {
				t.Fatalf("%+v: %+v, %v", c, d, ok)
			}
			if d.Before != nil {
				got = append(got, who)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: texts of %v are left, want %v", c, got, c.want)
		}
	}
}
