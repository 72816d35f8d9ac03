package offline

import (
	"math/rand/v2"
	"slices"
)

// finder is the state of one search for a place.
type finder struct {
	set   []int32
	w     int64 // weight of set
	node  int32 // best place so far
	gain  int64
	blink uint32 // chance out of 1<<32 to overlook a place
	rnd   *rand.PCG
}

// find returns the place where the detached x shares most, more than floor: the node to attach it to. The gain is
// the weight that x shares there less what the nodes above must give up because x lacks it. It is root with gain
// floor if there is none.
func (f *forest) find(x int32, floor int64) (place int32, gain int64) {
	return f.findSet(f.nodes[x].seg, root, floor)
}

// findSet is find for a set that may not be in the forest. A good guess of the place saves time.
func (f *forest) findSet(set []int32, guess int32, floor int64) (place int32, gain int64) {
	f.load(set)
	f.at.set, f.at.w, f.at.node, f.at.gain = set, f.weigh(set), root, floor
	if guess != root {
		if gain := f.gain(guess); gain > floor {
			f.at.node, f.at.gain = guess, gain
		}
	}
	f.below(root, 0, 0, 0)
	return f.at.node, f.at.gain
}

// gain is what the loaded set gains beside or below v; 0 if v is not in the forest any more.
func (f *forest) gain(v int32) (gain int64) {
	f.path = f.path[:0]
	for ; v != root; v = f.nodes[v].up {
		if v == none {
			return 0
		}
		f.path = append(f.path, v)
	}
	lack := int64(0)
	for _, v := range slices.Backward(f.path) {
		x := &f.nodes[v]
		f.steps += 1 + len(x.seg)
		gain -= lack
		lack += x.w
		for _, d := range x.seg {
			if f.stamp[d] == f.cur {
				gain += f.weight[d]
				lack -= f.weight[d]
			}
		}
	}
	return gain
}

// below tries the children of v. share: weight of the set in v's path; lack: of v's path not in the set; lost: sum of
// lack over the nodes above v.
func (f *forest) below(v int32, share, lack, lost int64) {
	lost += lack
	if !f.wide[v] {
		for c := f.nodes[v].kid; c != none; c = f.nodes[c].next {
			f.try(c, share, lack, lost)
		}
		return
	}
	t := &f.index
	if t.used == 0 {
		return
	}
	mask := len(t.keys) - 1
	for _, d := range f.at.set {
		key := kidKey(v, d)
		f.steps++
		for i := t.slot(key); t.keys[i] != noKey; i = (i + 1) & mask {
			if c := t.kids[i]; t.keys[i] == key && f.seen[c] != f.cur {
				f.seen[c] = f.cur
				f.try(c, share, lack, lost)
			}
		}
	}
}

func (f *forest) try(c int32, share, lack, lost int64) {
	x := &f.nodes[c]
	f.steps += 1 + len(x.seg)
	in := int64(0)
	for _, d := range x.seg {
		if f.stamp[d] == f.cur {
			in += f.weight[d]
		}
	}
	if in == 0 {
		return
	}
	share += in
	if share-lost > f.at.gain && (f.at.blink == 0 || uint32(f.at.rnd.Uint64()) >= f.at.blink) {
		f.at.node, f.at.gain = c, share-lost
	}
	lack += x.w - in
	if x.kid != none && f.at.w-lost-lack > f.at.gain {
		f.below(c, share, lack, lost)
	}
}
