package h1

import (
	"sync"
	"time"
)

// pool keeps unused connections. The one that was used last is used next, so that those too many grow old.
type pool struct {
	mu    sync.Mutex
	idle  map[string][]*conn // by address, oldest first
	sweep *time.Timer        // runs while there are any
	every time.Duration
}

// take returns an unused connection that the upstream has not closed, or nil.
func (p *pool) take(address string) *conn {
	for {
		c := p.pop(address)
		if c == nil || c.alive() {
			return c
		}
		c.kill()
	}
}

func (p *pool) pop(address string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[address]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	list[len(list)-1] = nil
	p.idle[address] = list[:len(list)-1]
	return c
}

// put keeps a connection for at most the given time, or closes it if there are enough.
func (p *pool) put(c *conn, idle time.Duration, most int) {
	c.since = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle[c.address]) >= most {
		c.kill()
		return
	}
	if p.idle == nil {
		p.idle = make(map[string][]*conn)
	}
	p.idle[c.address] = append(p.idle[c.address], c)
	if p.sweep == nil {
		p.every = idle
		p.sweep = time.AfterFunc(idle, p.expire)
	}
}

// expire closes connections that have grown old.
func (p *pool) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sweep == nil {
		return // closed meanwhile
	}
	old, next := time.Now().Add(-p.every), time.Time{}
	for address, list := range p.idle {
		n := 0
		for n < len(list) && !list[n].since.After(old) {
			list[n].kill()
			n++
		}
		if n == len(list) {
			delete(p.idle, address)
			continue
		}
		p.idle[address] = append([]*conn(nil), list[n:]...)
		if first := list[n].since; next.IsZero() || first.Before(next) {
			next = first
		}
	}
	if p.sweep = nil; !next.IsZero() {
		p.sweep = time.AfterFunc(time.Until(next.Add(p.every)), p.expire)
	}
}

// close closes all unused connections.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range p.idle {
		for _, c := range list {
			c.kill()
		}
	}
	p.idle = nil
	if p.sweep != nil {
		p.sweep.Stop()
		p.sweep = nil
	}
}
