package diagnosis

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/metrics"
	"github.com/ragpilot/ragpilot/prefixdiff"
)

// ours is the source of what was found by comparing prompts.
const ours = "ragpilot"

// counters are the metrics. Labels have few values: causes, and how a comparison went.
type counters struct {
	misses, lost, theirs              *prometheus.CounterVec
	compared, dropped, unread, failed prometheus.Counter
}

func newCounters(r prometheus.Registerer, bytes func() int64) (counters, error) {
	set := metrics.NewSet(r)
	c := counters{
		misses: set.Counters("ragpilot_prefix_misses_total",
			"Prompts that were not in the engine's cache as far as they could have been, by cause.", "cause"),
		lost: set.Counters("ragpilot_prefix_lost_tokens_total", "Prompt tokens of these that were computed again, estimated.", "cause"),
		theirs: set.Counters("ragpilot_provider_misses_total",
			"Prompts that were not in the provider's cache as it says itself where clients ask for it, by our names of causes.", "cause"),
	}
	prompts := set.Counters("ragpilot_diagnosed_prompts_total",
		"Prompts that were compared with earlier ones, dropped because there was no room, unread because they have no known form, or failed.",
		"result")
	c.compared, c.dropped = prompts.WithLabelValues("compared"), prompts.WithLabelValues("dropped")
	c.unread, c.failed = prompts.WithLabelValues("unread"), prompts.WithLabelValues("failed")
	metrics.Read(set, "ragpilot_diagnosis_bytes", "Memory that is taken to compare prompts with earlier ones, about.", bytes)
	for _, name := range prefixdiff.Causes() {
		c.misses.WithLabelValues(string(name))
		c.lost.WithLabelValues(string(name))
	}
	return c, set.Err()
}

// errForgotten: what is known of the tenant was dropped since.
var errForgotten = errors.New("diagnosis: forgotten")

// tenantOf returns what is remembered of the prompt's tenant.
func (m *Misses) tenantOf(p *prompt) (*tenant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.forgotten {
		return nil, errForgotten
	}
	if t, ok := m.tenants.Get(p.sent.Tenant); ok {
		return t, nil
	}
	x, err := prefixdiff.New(prefixdiff.Config{MaxBytes: max(m.indexBytes(), 1), KeepTexts: m.opt.KeepTexts})
	if err != nil {
		return nil, err
	}
	t := &tenant{index: x, origins: lru.New[int, *origin](keptOrigins), ids: lru.New[string, int](keptOrigins)}
	m.tenants.Put(p.sent.Tenant, t)
	return t, nil
}

// indexBytes is the most that indexes take together.
func (m *Misses) indexBytes() int64 { return m.opt.Bytes - m.opt.Bytes/heldShare }

// compared counts a prompt, and drops the tenants that were not asked for longest while all take too much.
func (m *Misses) compared(p *prompt) {
	m.count.compared.Inc()
	bytes := p.tenant.index.Bytes()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total++
	p.tenant.bytes = bytes + int64(p.tenant.origins.Len())*originBytes
	sum := int64(0)
	for _, t := range m.tenants.All() {
		sum += t.bytes
	}
	for sum > m.indexBytes() && m.tenants.Len() > 1 {
		_, t, _ := m.tenants.DropOldest()
		sum -= t.bytes
	}
}

// add notes a miss. logged is the path without names of the user's.
func (m *Misses) add(p *prompt, x dashboard.Miss, logged string) {
	x.At, x.ID, x.Tenant, x.Session, x.Model = p.sent.Sent, clip(p.ended.ID), clip(p.sent.Tenant), p.sent.Session, clip(p.sent.Model)
	lost := 0
	if x.Lost != nil {
		lost = *x.Lost
		if m.opt.Cost != nil {
			if money, ok := m.opt.Cost(p.sent.Model, lost); ok {
				x.Money = &money
			}
		}
	}
	if !m.keep(p, x, lost) {
		return
	}
	if x.Source == ours {
		m.count.misses.WithLabelValues(x.Cause).Inc()
		m.count.lost.WithLabelValues(x.Cause).Add(float64(lost))
	} else {
		m.count.theirs.WithLabelValues(x.Cause).Inc()
	}
	m.opt.Log.Debug("prefix miss", "request", p.ended.LogID, "tenant", p.sent.Tenant, "source", x.Source, "cause", x.Cause, "path", logged,
		"token", x.Token, "lost", lost)
}

// keep adds a miss to the last ones and to the sums, unless its tenant was forgotten meanwhile.
func (m *Misses) keep(p *prompt, x dashboard.Miss, lost int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.forgotten || x.Source == ours && !m.current(p) {
		return false
	}
	if len(m.last) < keptMisses {
		m.last = append(m.last, x)
	} else {
		m.last[m.added%keptMisses] = x
	}
	m.added++
	k := cause{x.Source, x.Cause}
	c := m.causes[k]
	if c == nil {
		c = &dashboard.Cause{Source: x.Source, Cause: x.Cause}
		m.causes[k] = c
	}
	c.Misses++
	c.Lost += lost
	if x.Money != nil {
		if c.Money == nil {
			c.Money = new(float64)
		}
		*c.Money += *x.Money
	}
	return true
}

// current reports whether the index that a prompt is in is still its tenant's. The lock is held.
func (m *Misses) current(p *prompt) bool {
	t, ok := m.tenants.Peek(p.sent.Tenant)
	return ok && t == p.tenant
}

// providerCauses are the names of providers' reasons here.
var providerCauses = map[string]prefixdiff.Cause{
	"model_changed":            prefixdiff.Model,
	"prompt_cache_key_changed": prefixdiff.Salt,
	"tools_changed":            prefixdiff.ToolSet,
	"system_changed":           prefixdiff.Template,
	"messages_changed":         prefixdiff.EditedHistory,
	"input_changed":            prefixdiff.EditedHistory,
	"context_compacted":        prefixdiff.EditedHistory,
}

// theirs notes what the provider said. A reason that has no name here is another cause; its own name is shown beside it.
func (p *prompt) theirs() {
	t := p.ended.Theirs
	name, ok := providerCauses[t.Reason]
	switch {
	case ok:
	case t.Reason == "unavailable", t.Reason == "previous_message_not_found":
		return // it does not know
	default:
		name = prefixdiff.Other
	}
	source := p.m.opt.Provider
	if source == "" {
		source = "upstream"
	}
	x := dashboard.Miss{Source: source, Cause: string(name), Reason: t.Reason}
	if t.Tokens >= 0 {
		x.Lost = &t.Tokens
	}
	p.m.add(p, x, "")
}
