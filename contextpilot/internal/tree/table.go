package tree

// table finds numbers by hash: open addressing with linear probing. What the numbers stand for is hashed and
// compared by its owner. The zero value is empty.
type table struct {
	slots []slot
	n     int
}

// slot keeps the hash, so that growth and removal look at no value. Eight bytes.
type slot struct {
	hash uint32
	at   int32 // 0: empty
}

// first returns a number with hash h and where it is, 0 if there is none.
func (t *table) first(h uint32) (at int32, i int) {
	if t.n == 0 {
		return 0, 0
	}
	return t.from(h, t.home(h))
}

// next returns the number with hash h behind the one at i, 0 if there is none.
func (t *table) next(h uint32, i int) (at int32, j int) { return t.from(h, t.after(i)) }

func (t *table) from(h uint32, i int) (int32, int) {
	for t.slots[i].at != 0 && t.slots[i].hash != h {
		i = t.after(i)
	}
	return t.slots[i].at, i
}

// home spreads hashes over any number of slots, and in ascending order.
func (t *table) home(h uint32) int { return int(uint64(h) * uint64(len(t.slots)) >> 32) }

func (t *table) after(i int) int {
	if i++; i < len(t.slots) {
		return i
	}
	return 0
}

// add keeps at, which must not be 0 and not be there.
func (t *table) add(h uint32, at int32) {
	if t.n+1 > len(t.slots)*4/5 { // longer runs cost more than the memory is worth
		old := t.slots
		t.slots = make([]slot, max(8, len(old)*5/4)) // copying is cheap: both are in order of hash
		for _, s := range old {
			if s.at != 0 {
				t.put(s)
			}
		}
	}
	t.n++
	t.put(slot{h, at})
}

func (t *table) put(s slot) {
	i := t.home(s.hash)
	for t.slots[i].at != 0 {
		i = t.after(i)
	}
	t.slots[i] = s
}

// remove forgets at, which must be there, and moves what follows it closer to its home.
func (t *table) remove(h uint32, at int32) {
	i := t.home(h)
	for t.slots[i].at != at {
		i = t.after(i)
	}
	t.n--
	for j := t.after(i); t.slots[j].at != 0; j = t.after(j) {
		if t.distance(t.home(t.slots[j].hash), j) >= t.distance(i, j) {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = slot{}
}

// distance returns the number of steps from slot i to slot j.
func (t *table) distance(i, j int) int {
	if d := j - i; d >= 0 {
		return d
	}
	return j - i + len(t.slots)
}
