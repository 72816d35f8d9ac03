package h1

import (
	"slices"
	"sync"
	"time"
)

// pool keeps unused connections. The one that was used last is used next, so that those too many grow old.
type pool struct {
	mu    sync.Mutex
	idle  map[string][]*conn // by address, oldest first
	sweep *time.Timer        // runs while there are any
	keep  time.Duration
}

// look is how often unused connections are looked at: those that the upstream has closed are closed here, too.
const look = time.Second

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
		p.keep = idle
		p.sweep = time.AfterFunc(min(idle, look), p.expire)
	}
}

// expire closes connections that have grown old, or that the upstream has closed.
func (p *pool) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sweep == nil {
		return // closed meanwhile
	}
	old := time.Now().Add(-p.keep)
	for address, list := range p.idle {
		kept := slices.DeleteFunc(list, func(c *conn) bool {
			if c.since.After(old) && c.alive() {
				return false
			}
			c.kill()
			return true
		})
		if p.idle[address] = kept; len(kept) == 0 {
			delete(p.idle, address)
		}
	}
	if p.sweep = nil; len(p.idle) > 0 {
		p.sweep = time.AfterFunc(min(p.keep, look), p.expire)
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
