package diagnosis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/diagnosis"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// TestEvicted: the cause is named only if the engine has reported, between the answer of the earlier prompt and that of the later one, that
// less is left than is missing.
func TestEvicted(t *testing.T) {
	for name, c := range map[string]struct {
		report func(m *diagnosis.Misses)
		at     int // seconds from the start: the answers of the first two are at 10 and 20, of the last at 40
		want   string
	}{
		"none":                    {func(*diagnosis.Misses) {}, 30, "other"},
		"its ID":                  {func(m *diagnosis.Misses) { m.Evicted("red", 0, "second") }, 30, "evicted"},
		"the ID as vLLM has it":   {func(m *diagnosis.Misses) { m.Evicted("red", 0, "chatcmpl-second-0a1b2c3d") }, 30, "evicted"},
		"the one that it goes on": {func(m *diagnosis.Misses) { m.Evicted("red", 10, "unknown", "first") }, 30, "evicted"},
		"most is left":            {func(m *diagnosis.Misses) { m.Evicted("red", 600, "second") }, 30, "other"},
		"another tenant's":        {func(m *diagnosis.Misses) { m.Evicted("blue", 0, "second") }, 30, "other"},
		"before it was sent":      {func(m *diagnosis.Misses) { m.Evicted("red", 0, "first") }, 15, "other"},
		"after the answer":        {func(m *diagnosis.Misses) { m.Evicted("red", 0, "second") }, 50, "other"},
		"all":                     {func(m *diagnosis.Misses) { m.Emptied(nil) }, 30, "evicted"},
		"all of the model":        {func(m *diagnosis.Misses) { m.Emptied([]string{"n", "m"}) }, 30, "evicted"},
		"all of another model":    {func(m *diagnosis.Misses) { m.Emptied([]string{"n"}) }, 30, "other"},
		"all, before it was sent": {func(m *diagnosis.Misses) { m.Emptied(nil) }, 15, "other"},
	} {
		start := time.Now()
		now := start
		m := newMisses(t, diagnosis.Options{Now: func() time.Time { return now }})
		send := func(id string, at int) {
			first := start.Add(time.Duration(at) * time.Second)
			e := answered
			e.ID, e.First, e.Prompt, e.Cached = fmt.Sprint(at), first, 800, 0
			if at == 20 {
				e.Cached = 800
			}
			m.Sent(proxy.SentPrompt{Tenant: "red", Model: "m", EngineID: id, Body: body(1, "q"), Sent: first.Add(-time.Second)}).Ended(e)
			m.Wait()
		}
		report := func() {
			now = start.Add(time.Duration(c.at) * time.Second)
			c.report(m)
		}
		send("first", 10)
		if c.at == 15 {
			report()
		}
		second := "second"
		if name == "the one that it goes on" {
			second = "" // no report names it
		}
		send(second, 20)
		if c.at != 15 {
			report()
		}
		send("third", 40)
		d := m.Data()
		if len(d.Last) != 1 || d.Last[0].Cause != c.want || d.Last[0].Against != "20" || d.Last[0].Path != "" {
			t.Errorf("%s: %+v, want %s", name, d.Last, c.want)
		}
	}
}

// TestForgottenOnItsWay: what was compared before its tenant was forgotten is not shown afterwards.
func TestForgottenOnItsWay(t *testing.T) {
	m := newMisses(t, diagnosis.Options{})
	pass(m, "red", body(1, "q"), nil)
	m.Wait()
	p := m.Sent(proxy.SentPrompt{Tenant: "red", Body: body(2, "q"), Sent: time.Now()})
	if p.Miss() == "" {
		t.Fatal("nothing was found")
	}
	m.Forget("red", "")
	p.Ended(answered)
	m.Wait()
	if d := m.Data(); len(d.Last) != 0 {
		t.Errorf("%+v", d.Last)
	}
}
