package diagnosis

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/engines/evict"
	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// Options configure Misses. Bytes is required.
type Options struct {
	Bytes     int64 // the most memory that it takes, of all tenants together
	Tenants   int   // the most that are remembered; 0: 1,024
	KeepTexts bool  // the texts around a difference are shown, and whole paths
	// Share is the most of one core that comparing takes, up to 1; 0: an eighth of the cores, at least a quarter of one. Prompts wait for
	// that in the queue.
	Share float64
	// BlockSize returns the tokens of a block of the cache that a model's prompts go to, 0 if that is not known; nil: it never is.
	BlockSize func(model string) int
	// Cost is what lost tokens of a model cost more than tokens from the cache; ok is false if that is not known. Nil: it never is.
	Cost     func(model string, tokens int) (money float64, ok bool)
	Currency string // of Cost
	Provider string // the cloud provider's name; "": the engine is one's own
	Registry prometheus.Registerer
	Log      *slog.Logger     // nil: slog.Default
	Now      func() time.Time // nil: time.Now
}

const (
	// heldShare is which part of the memory bodies may take whose answers have not ended or that wait in the queue; indexes have the rest.
	heldShare = 4
	// maxQueue is how many prompts may wait.
	maxQueue = 1024
	// keptMisses is how many misses are kept.
	keptMisses = 200
)

// Misses is a proxy.Diagnosis. Safe for concurrent use. What reports to it or reads it may have none: a nil Misses knows nothing.
type Misses struct {
	opt   Options
	count counters
	held  atomic.Int64 // bytes of bodies

	mu      sync.Mutex // guards what follows
	queue   []*prompt
	rest    time.Time // until when nothing is compared
	running bool      // a goroutine works the queue off
	now     *prompt   // that it compares
	closed  bool
	stop    chan struct{} // closed with it
	idle    *sync.Cond    // running has become false
	tenants *lru.Cache[string, *tenant]
	emptied map[string]time.Time // by model, "" for all: when an engine reported that its cache is empty
	last    []dashboard.Miss     // the one that came as number n stands at n modulo keptMisses
	added   int
	causes  map[cause]*dashboard.Cause
	total   int // prompts that were compared
	dropped int
}

// cause is what sums are kept for.
type cause struct{ source, name string }

// New returns Misses without any. Errors are about metrics that are in the registry already.
func New(o Options) (*Misses, error) {
	o.Tenants, o.Log = cmp.Or(max(o.Tenants, 0), 1024), cmp.Or(o.Log, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Share <= 0 {
		o.Share = max(float64(runtime.GOMAXPROCS(0))/8, 0.25)
	}
	o.Share = min(o.Share, 1)
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	m := &Misses{
		opt: o, stop: make(chan struct{}), tenants: lru.New[string, *tenant](o.Tenants), emptied: map[string]time.Time{},
		causes: map[cause]*dashboard.Cause{},
	}
	m.idle = sync.NewCond(&m.mu)
	var err error
	if m.count, err = newCounters(o.Registry, m.bytes); err != nil {
		return nil, fmt.Errorf("diagnosis: %w", err)
	}
	return m, nil
}

// Sent implements proxy.Diagnosis. It keeps the body until the answer has ended, if there is room.
func (m *Misses) Sent(s proxy.SentPrompt) proxy.Diagnosed {
	s.Session, s.Replica = clip(s.Session), clip(s.Replica)
	p := &prompt{m: m, sent: s, size: int64(len(s.Body))}
	if m.held.Add(p.size) > m.opt.Bytes/heldShare {
		p.release()
	}
	return p
}

// enqueue has a prompt compared, whose answer has ended.
func (m *Misses) enqueue(p *prompt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.queue) >= maxQueue {
		p.release()
		m.drop()
		return
	}
	m.queue = append(m.queue, p)
	if !m.running {
		m.running = true
		go m.work()
	}
}

// drop counts a prompt that is not compared. The lock is held.
func (m *Misses) drop() {
	m.dropped++
	m.count.dropped.Inc()
}

// work compares the prompts in the queue, and ends when there are none.
func (m *Misses) work() {
	for {
		m.pause()
		m.mu.Lock()
		if len(m.queue) == 0 {
			m.queue, m.running, m.now = nil, false, nil
			m.idle.Broadcast()
			m.mu.Unlock()
			return
		}
		p := m.queue[0]
		m.queue[0] = nil
		m.queue, m.now = m.queue[1:], p
		m.mu.Unlock()
		began := time.Now()
		p.guarded(p.diagnose)
		p.release()
		now := time.Now()
		m.mu.Lock()
		m.rest = now.Add(time.Duration(float64(now.Sub(began)) * (1/m.opt.Share - 1)))
		m.mu.Unlock()
	}
}

// pause waits while comparing has had its share of the processor, and prompts wait.
func (m *Misses) pause() {
	m.mu.Lock()
	left := time.Until(m.rest)
	none := len(m.queue) == 0
	m.mu.Unlock()
	if none || left <= 0 {
		return
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-t.C:
	case <-m.stop:
	}
}

// Close waits until the prompt that is being compared is done; those that wait are dropped.
func (m *Misses) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.closed = true
		close(m.stop)
	}
	for _, p := range m.queue {
		p.release()
		m.drop()
	}
	m.queue = nil
	for m.running {
		m.idle.Wait()
	}
	return nil
}

// Wait waits until no prompt is in the queue; for tests.
func (m *Misses) Wait() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.running {
		m.idle.Wait()
	}
}

// Forget drops what is kept of a tenant, or with a session's name the misses of that session. Which prompts are a session's is not known
// in the index, so all of the tenant's are dropped from it. It reports whether there was anything.
func (m *Misses) Forget(tenant, session string) bool {
	if m == nil {
		return false
	}
	session = clip(session)
	m.mu.Lock()
	defer m.mu.Unlock()
	_, there := m.tenants.Peek(tenant)
	m.tenants.Delete(tenant)
	for _, p := range append(m.queue, m.now) {
		if p != nil && p.sent.Tenant == tenant {
			p.forgotten = true
		}
	}
	kept := slices.DeleteFunc(m.inOrder(), func(x dashboard.Miss) bool {
		return x.Tenant == tenant && (session == "" || x.Session == session)
	})
	there = there || len(kept) < len(m.last)
	m.last, m.added = kept, len(kept)
	return there
}

// inOrder returns a copy of the last misses, oldest first. The lock is held.
func (m *Misses) inOrder() []dashboard.Miss {
	out := make([]dashboard.Miss, 0, len(m.last))
	for i := range m.last {
		out = append(out, m.last[(m.added+i)%len(m.last)])
	}
	return out
}

// Evicted takes the IDs of a tenant's prompts, as its engine names them, of which only the first tokens are left in the cache.
func (m *Misses) Evicted(tenant string, left int, ids ...string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.tenants.Peek(tenant)
	if !ok {
		return
	}
	for _, id := range ids {
		if known, ok := evict.Match(id, t.ids.Has); ok {
			n, _ := t.ids.Peek(known)
			if o, ok := t.origins.Peek(n); ok {
				o.gone, o.left = m.opt.Now(), left
			}
		}
	}
}

// Emptied takes that the caches of engines which serve some models (none: all) hold nothing any more, as they reported.
func (m *Misses) Emptied(models []string) {
	if m == nil {
		return
	}
	if len(models) == 0 {
		models = []string{""}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, model := range models {
		m.emptied[model] = m.opt.Now()
	}
}

// bytes is about what is taken.
func (m *Misses) bytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.held.Load()
	for _, t := range m.tenants.All() {
		n += t.bytes
	}
	return n
}

// Data is what the dashboard shows, newest miss first.
func (m *Misses) Data() *dashboard.Misses {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := &dashboard.Misses{Compared: m.total, Dropped: m.dropped, Currency: m.opt.Currency, Last: m.inOrder(), Causes: []dashboard.Cause{}}
	slices.Reverse(d.Last)
	for _, c := range m.causes {
		sum := *c
		if c.Money != nil {
			sum.Money = new(*c.Money)
		}
		d.Causes = append(d.Causes, sum)
	}
	slices.SortFunc(d.Causes, func(a, b dashboard.Cause) int {
		return cmp.Or(b.Lost-a.Lost, b.Misses-a.Misses, cmp.Compare(a.Source, b.Source), cmp.Compare(a.Cause, b.Cause))
	})
	return d
}
