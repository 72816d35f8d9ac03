//go:build cuda

package cuda

import (
	"fmt"
	"sync"

	"gorgonia.org/cu"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

const (
	slabPages  = 64       // at most
	slabShare  = 32       // a slab is at most this part of the budget, or one page
	poolBytes  = 64 << 20 // of pinned memory for writes, if two pages are not more
	poolPages  = 256      // that have room there at most
	poolGroups = 16       // of layers, at most, that streams wait for one by one
)

// pool implements [gpu.Pool].
//
// A written page waits in pinned memory until a stream's operation needs it or the memory is full. Then all such pages are copied, a group
// of layers after the other, on a stream for copies, with an event behind each group: so the first layers of all pages come first, and
// the operations on them need not wait for the others.
type pool struct {
	d       *device
	heads   compute.Heads
	layers  int
	floats  int
	perSlab int // pages
	stride  uint64

	mu     sync.Mutex // of the following
	free   []uint64
	slabs  []uint64
	events []cu.Event // of groups
	halves [2]half    // of what waits
	now    int        // the half that is filled
	writes int        // how many times events were recorded
	group  int        // layers
	closed bool

	reading sync.Mutex // of the following
	page    *pinned    // for reads
	pointer uint64     // the page's address, on the card
}

// half is half the memory of writes: pages, and their addresses in the pool.
type half struct {
	pages  *pinned
	table  uint64   // on the card
	room   int      // pages
	fresh  []uint64 // addresses of those that wait: each once, since a kernel copies all of them in any order
	place  map[uint64]int
	done   cu.Event // behind the last copy out of it
	copied bool     // done has been recorded
}

// NewPool implements [gpu.Device].
func (d *device) NewPool(heads compute.Heads, layers int) gpu.Pool {
	p := &pool{d: d, heads: heads, layers: layers, floats: gpu.LayerFloats(heads) * layers}
	p.perSlab = int(max(1, min(slabPages, d.budget/slabShare/int64(4*p.floats))))
	p.stride = uint64(p.perSlab * 4 * gpu.LayerFloats(heads))
	p.group = blocks(layers, poolGroups)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pools[p] = true
	return p
}

// Floats implements [gpu.Pool].
func (p *pool) Floats() int { return p.floats }

// layer is how many bytes a layer is behind the first.
func (p *pool) layer(l int) uint64 { return uint64(l) * p.stride }

// units are the 16 bytes of a layer.
func (p *pool) units() uint64 { return uint64(gpu.LayerFloats(p.heads) / 4) }

// New implements [gpu.Pool]. Heads may have up to 256 dimensions.
func (p *pool) New() (gpu.Page, error) {
	if p.heads.Dim > maxDim {
		return gpu.Page{}, p.d.failure("page", "", fmt.Errorf("heads of %d dimensions, want at most %d", p.heads.Dim, maxDim))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		slab, err := p.d.alloc("page", "keys and values", int64(p.perSlab)*4*int64(p.floats))
		if err != nil {
			return gpu.Page{}, err
		}
		p.slabs = append(p.slabs, slab)
		for i := p.perSlab - 1; i >= 0; i-- {
			p.free = append(p.free, slab+uint64(i*4*gpu.LayerFloats(p.heads)))
		}
	}
	last := len(p.free) - 1
	page := gpu.Page{Addr: p.free[last]}
	p.free = p.free[:last]
	return page, nil
}

// Free implements [gpu.Pool]. Copies to the page that have not been made yet come before all that is done with it next.
func (p *pool) Free(page gpu.Page) {
	if page.Addr == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, page.Addr)
}

// prepare allocates what writes and copies need. It is called with mu.
func (p *pool) prepare() error {
	if p.events != nil {
		return nil
	}
	room := max(1, min(poolBytes/(8*p.floats), poolPages/2))
	var halves [2]half
	var events []cu.Event
	var err error
	for i := range halves {
		if halves[i].table, err = p.d.alloc("page", "staging", int64(8*room)); err != nil {
			break
		}
		halves[i].room, halves[i].place = room, map[uint64]int{}
	}
	if err == nil {
		err = p.d.do(func() (err error) {
			for i := range halves {
				if halves[i].pages, err = p.d.pin(4*p.floats*room + tableBytes(room)); err != nil {
					return err
				}
				if halves[i].done, err = p.d.event(); err != nil {
					return err
				}
			}
			for range blocks(p.layers, p.group) {
				e, err := p.d.event()
				if err != nil {
					return err
				}
				events = append(events, e)
			}
			return nil
		})
	}
	if err != nil {
		p.drop(halves, events)
		return p.d.failure("page", "staging", err)
	}
	p.halves, p.events = halves, events
	return nil
}

// drop gives back what prepare has allocated.
func (p *pool) drop(halves [2]half, events []cu.Event) {
	for _, h := range halves {
		p.d.release(h.table)
	}
	_ = p.d.do(func() error {
		for _, h := range halves {
			p.d.unpin(h.pages)
			p.d.dropEvent(h.done)
		}
		for _, e := range events {
			p.d.dropEvent(e)
		}
		return nil
	})
}

// close gives everything back. Nothing of the pool is in use.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	if p.d.isLost() == nil {
		_ = waitStream(p.d.context, p.d.in)
	}
	p.drop(p.halves, p.events)
	for _, slab := range p.slabs {
		p.d.release(slab)
	}
	p.d.release(p.pointer)
	_ = p.d.do(func() error { p.d.unpin(p.page); return nil })
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	delete(p.d.pools, p)
}

// Write implements [gpu.Pool].
func (p *pool) Write(to gpu.Page, floats []float32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.prepare(); err != nil {
		return err
	}
	h := &p.halves[p.now]
	if i, ok := h.place[to.Addr]; ok {
		copy(h.page(i, 4*p.floats), view(floats))
		return nil
	}
	if len(h.fresh) == h.room {
		if err := p.copyIn(); err != nil {
			return err
		}
		h = &p.halves[p.now]
	}
	if len(h.fresh) == 0 && h.copied { // the last copies out of it must have ended
		if err := waitEvent(p.d.context, h.done); err != nil {
			return p.d.failure("kv_copy", "keys and values", err)
		}
		h.copied = false
	}
	h.place[to.Addr] = len(h.fresh)
	h.fresh = append(h.fresh, to.Addr)
	copy(h.page(len(h.fresh)-1, 4*p.floats), view(floats))
	return nil
}

// page is the memory of page i.
func (h *half) page(i, bytes int) []byte { return h.pages.bytes[tableBytes(h.room)+bytes*i:][:bytes] }

// tableBytes is what n addresses take in front of pages, which kernels read 16 bytes at a time.
func tableBytes(n int) int { return (8*n + 255) / 256 * 256 }

// copyIn starts the copies of pages that wait. If that fails, the next call tries again. It is called with mu.
func (p *pool) copyIn() error {
	if p.events == nil || len(p.halves[p.now].fresh) == 0 {
		return nil
	}
	h := &p.halves[p.now]
	n := len(h.fresh)
	copy(h.pages.bytes, view(h.fresh))
	err := p.d.do(func() error {
		if err := p.d.isLost(); err != nil {
			return err
		}
		if err := cu.MemcpyHtoDAsync(cu.DevicePtr(h.table), h.pages.at(0), int64(8*n), p.d.in); err != nil {
			return err
		}
		for i, e := range p.events {
			o := p.copyOf(h.pages.address+uint64(tableBytes(h.room)), h.table, n, i*p.group, min((i+1)*p.group, p.layers), false)
			if err := p.d.launch(o, p.d.in); err != nil {
				return err
			}
			if err := e.Record(p.d.in); err != nil {
				return err
			}
		}
		return h.done.Record(p.d.in)
	})
	if err != nil { // the pages still wait: writes of them have succeeded
		return p.d.failure("kv_copy", "keys and values", err)
	}
	h.fresh, h.copied = h.fresh[:0], true
	clear(h.place)
	p.now, p.writes = 1-p.now, p.writes+1
	return nil
}

// copyOf is the kernel that copies layers of n pages between the host's memory and the pool.
func (p *pool) copyOf(host, table uint64, n, first, last int, out bool) operation {
	grid := [3]int{2, 1, 1}
	if out {
		grid[0] = 1
	}
	return operation{name: "kv_copy", grid: grid, block: 1024, args: []uint64{
		host, table, uint64(n), p.units(), uint64(first), uint64(last), uint64(p.layers), p.stride, flag(out),
	}}
}

// pageCopy is the kernel that copies a page within the pool.
func (p *pool) pageCopy(to, from gpu.Page) operation {
	return operation{name: "page_copy", grid: [3]int{4, p.layers, 1}, block: threads, args: []uint64{to.Addr, from.Addr, p.units(), p.stride}}
}

// await makes the stream's next operations wait for writes to a layer, or to all of them: −1.
func (s *stream) await(p *pool, layer int) {
	p.mu.Lock()
	err := p.copyIn()
	writes, events := p.writes, p.events
	p.mu.Unlock()
	if err != nil {
		s.fail("kv_copy", "keys and values", err)
		return
	}
	if writes == 0 {
		return
	}
	seen := s.seen[p]
	if seen == nil {
		seen = make([]int, len(events))
		s.seen[p] = seen
	}
	group := len(events) - 1
	if layer >= 0 {
		group = layer / p.group
	}
	if seen[group] == writes {
		return
	}
	for i := range group + 1 { // the events of a copy come in order
		seen[i] = writes
	}
	e := events[group]
	s.push(operation{name: "wait", what: "keys and values", run: func() error { return s.cu.Wait(e, 0) }})
}

// Copy implements [gpu.Pool]. It comes behind all operations that streams have been given.
func (p *pool) Copy(to, from gpu.Page) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.prepare(); err != nil {
		return err
	}
	if err := p.copyIn(); err != nil {
		return err
	}
	streams := keys(&p.d.mu, p.d.streams)
	for _, s := range streams {
		s.flush()
	}
	err := p.d.do(func() error {
		if err := p.d.isLost(); err != nil {
			return err
		}
		for _, s := range streams {
			if err := p.d.follow(p.d.in, s.cu); err != nil {
				return err
			}
		}
		if err := p.d.launch(p.pageCopy(to, from), p.d.in); err != nil {
			return err
		}
		for _, e := range p.events {
			if err := e.Record(p.d.in); err != nil {
				return err
			}
		}
		return nil
	})
	p.writes++
	if err != nil {
		return p.d.failure("page_copy", "keys and values", err)
	}
	return nil
}

// follow makes a stream wait for what has been started on another. It is called by the device's goroutine.
func (d *device) follow(a, b cu.Stream) error {
	e, err := d.event()
	if err != nil {
		return err
	}
	defer d.dropEvent(e) // the driver keeps it as long as needed
	if err := e.Record(b); err != nil {
		return err
	}
	return a.Wait(e, 0)
}

// Read implements [gpu.Pool].
func (p *pool) Read(floats []float32, from gpu.Page) error {
	p.mu.Lock()
	err := p.copyIn()
	writes, events := p.writes, p.events
	p.mu.Unlock()
	if err != nil {
		return err
	}
	p.reading.Lock()
	defer p.reading.Unlock()
	if p.page == nil {
		if p.pointer == 0 {
			if p.pointer, err = p.d.alloc("page", "staging", 8); err != nil {
				return err
			}
		}
		if err := p.d.do(func() (err error) { p.page, err = p.d.pin(4*p.floats + 16); return err }); err != nil {
			return p.d.failure("page", "staging", err)
		}
	}
	copy(p.page.bytes, view([]uint64{from.Addr}))
	err = p.d.do(func() error {
		if err := p.d.isLost(); err != nil {
			return err
		}
		if writes > 0 {
			if err := p.d.out.Wait(events[len(events)-1], 0); err != nil {
				return err
			}
		}
		if err := cu.MemcpyHtoDAsync(cu.DevicePtr(p.pointer), p.page.at(0), 8, p.d.out); err != nil {
			return err
		}
		return p.d.launch(p.copyOf(p.page.address+16, p.pointer, 1, 0, p.layers, true), p.d.out)
	})
	if err == nil {
		err = waitStream(p.d.context, p.d.out)
	}
	if err != nil {
		return p.d.failure("kv_copy", "keys and values", err)
	}
	copy(view(floats), p.page.bytes[16:])
	return nil
}

// Take implements [gpu.Pool].
func (p *pool) Take(page *gpu.Page) ([]float32, error) {
	floats := make([]float32, p.floats)
	if err := p.Read(floats, *page); err != nil {
		return nil, err
	}
	return floats, nil
}
