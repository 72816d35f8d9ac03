package offline

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
