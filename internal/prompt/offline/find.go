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

// kidIndex finds the children of a node whose segment holds a block. Only wide nodes enter their children.
// Open addressing; a key may occur several times.
type kidIndex struct {
	keys []uint64
	kids []int32
	used int
}

const noKey = ^uint64(0)

func kidKey(parent, block int32) uint64 { return uint64(parent)<<32 | uint64(uint32(block)) }

func (t *kidIndex) slot(key uint64) int {
	h := key * 0x9E3779B97F4A7C15
	h ^= h >> 29
	return int(h*0xBF58476D1CE4E5B9>>20) & (len(t.keys) - 1)
}

func (t *kidIndex) add(key uint64, kid int32) {
	if 2*(t.used+1) > len(t.keys) {
		t.grow()
	}
	i := t.slot(key)
	for t.keys[i] != noKey {
		i = (i + 1) & (len(t.keys) - 1)
	}
	t.keys[i], t.kids[i] = key, kid
	t.used++
}

func (t *kidIndex) grow() {
	keys, kids := t.keys, t.kids
	size := max(64, 2*len(keys))
	t.keys, t.kids, t.used = make([]uint64, size), make([]int32, size), 0
	for i := range t.keys {
		t.keys[i] = noKey
	}
	for i, k := range keys {
		if k != noKey {
			t.add(k, kids[i])
		}
	}
}

// remove takes out one entry, which must be there, and moves later ones of its run up.
func (t *kidIndex) remove(key uint64, kid int32) {
	mask := len(t.keys) - 1
	i := t.slot(key)
	for t.keys[i] != key || t.kids[i] != kid {
		i = (i + 1) & mask
	}
	t.used--
	for j := i; ; {
		j = (j + 1) & mask
		if t.keys[j] == noKey {
			break
		}
		if home := t.slot(t.keys[j]); (j-home)&mask >= (j-i)&mask {
			t.keys[i], t.kids[i] = t.keys[j], t.kids[j]
			i = j
		}
	}
	t.keys[i] = noKey
}
