package order

// finder looks for the order of some units whose text goes furthest down the trie.
type finder struct {
	t      *trie
	units  []int32
	used   []bool
	path   []int32 // positions in units
	best   []int32 // the last one may be there in part only
	deep   int32   // bytes of best that are in the trie
	whole  int32   // bytes of all units
	visits int
	limit  int // of visits; 0: mostVisits
}

// mostVisits bounds the places looked at for one row.
const mostVisits = 2000

// find fills best and deep.
func (f *finder) find(units []int32) {
	f.units, f.path, f.best, f.deep, f.whole, f.visits = units, f.path[:0], f.best[:0], 0, 0, f.limit
	if f.limit == 0 {
		f.visits = mostVisits
	}
	f.used = append(f.used[:0], make([]bool, len(units))...)
	for _, u := range units {
		f.whole += int32(len(f.t.text[u]))
	}
	f.from(top, 0)
}

func (f *finder) from(s spot, depth int32) {
	for i, u := range f.units {
		if f.used[i] || f.repeated(i) {
			continue
		}
		n, end := f.t.follow(s, u)
		if n == 0 {
			continue
		}
		if depth+n > f.deep {
			f.deep = depth + n
			f.best = append(append(f.best[:0], f.path...), int32(i))
		}
		if int(n) < len(f.t.text[u]) {
			continue
		}
		if f.deep == f.whole || f.visits == 0 {
			return
		}
		f.visits--
		f.used[i] = true
		f.path = append(f.path, int32(i))
		f.from(end, depth+n)
		f.path = f.path[:len(f.path)-1]
		f.used[i] = false
		if f.deep == f.whole {
			return
		}
	}
}

// repeated reports whether an equal unit was tried already in this place.
func (f *finder) repeated(i int) bool {
	for j, u := range f.units[:i] {
		if u == f.units[i] && !f.used[j] {
			return true
		}
	}
	return false
}

// arrange writes the order found to dst: best, then the other units as they stood.
func (f *finder) arrange(dst []int32) []int32 {
	for i := range f.used {
		f.used[i] = false
	}
	for _, i := range f.best {
		dst = append(dst, f.units[i])
		f.used[i] = true
	}
	for i, u := range f.units {
		if !f.used[i] {
			dst = append(dst, u)
		}
	}
	return dst
}
