package offline

import "slices"

// journal remembers the nodes as they were at begin, so that a change can be undone.
type journal struct {
	on    bool
	mark  []uint32 // by node: == epoch if it is saved
	epoch uint32
	old   []saved
	segs  []int32 // the saved segments, one after the other
	taken []int32 // allocated since
	freed []int32 // released since: only free once the change is kept
	cost  int64
}

type saved struct {
	id int32
	n  node
}

// begin starts a change that ends with keep or undo.
func (f *forest) begin() {
	j := &f.log
	j.on = true
	j.epoch++
	if j.epoch == 0 {
		clear(j.mark)
		j.epoch = 1
	}
	j.old, j.segs, j.taken, j.freed, j.cost = j.old[:0], j.segs[:0], j.taken[:0], j.freed[:0], f.cost
}

func (f *forest) save(v int32) {
	j := &f.log
	if !j.on || j.mark[v] == j.epoch {
		return
	}
	j.mark[v] = j.epoch
	j.old = append(j.old, saved{v, f.nodes[v]})
	j.segs = append(j.segs, f.nodes[v].seg...)
	j.old[len(j.old)-1].n.seg = j.segs[len(j.segs)-len(f.nodes[v].seg):]
}

func (f *forest) keep() {
	f.log.on = false
	f.free = append(f.free, f.log.freed...)
}

func (f *forest) undo() {
	j := &f.log
	j.on = false
	for i := range j.old {
		f.unindex(j.old[i].id)
	}
	at := 0
	for i := range j.old {
		o := &j.old[i]
		x := &f.nodes[o.id]
		buf := append(x.seg[:0], j.segs[at:at+len(o.n.seg)]...)
		at += len(o.n.seg)
		*x = o.n
		x.seg = buf
	}
	for i := range j.old {
		f.reindex(j.old[i].id)
	}
	for _, v := range slices.Backward(j.taken) {
		f.free = append(f.free, v)
	}
	f.cost = j.cost
}
