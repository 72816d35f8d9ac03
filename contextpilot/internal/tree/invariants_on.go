//go:build invariants

package tree

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"strings"
)

// shadow is what should be in the index, kept the slow way: a list of requests with their paths, and for every block
// behind a certain prefix its length and its last use. A change of the tree that does not lead to the same ends the
// program, even where callers survive panics.
//
// A path is a string, eight bytes a block, so that its prefixes are prefixes of the string.
type shadow struct {
	reqs    []*shadowRequest // in order of arrival
	blocks  map[string]*shadowBlock
	clock   int
	inserts int
	dropped int
	changes int
	fail    func(message string) // nil: end the program
}

type shadowRequest struct {
	id     string
	path   string // to its end
	served bool
	moved  bool // does not end any more where it was sent to
	sure   int  // tokens of its path that were sure when it was inserted
	since  int  // number of inserts when it was inserted or, once it is served, answered or sent again
}

type shadowBlock struct {
	tokens int
	uses   int // requests that pass through it or end with it
	used   int // clock of its last use
	part   bool
	sure   bool // an answered request passed through it
}

// A large index is compared with its shadow after every 64th change only.
const (
	small  = 200 // requests
	sample = 64  // changes
)

const keyBytes = 8

func (s *shadow) find(id string) *shadowRequest {
	for _, r := range s.reqs {
		if r.id == id {
			return r
		}
	}
	return nil
}

func (s *shadow) insert(t *Tree, id string, path []Elem, steps, resident int) {
	if r := s.find(id); r != nil {
		s.cut(r, "")
	}
	if s.blocks == nil {
		s.blocks = map[string]*shadowBlock{}
	}
	s.inserts++
	r := &shadowRequest{id: id, since: s.inserts}
	for _, e := range path {
		r.path += key(e.Key)
	}
	found, tokens := 0, 0
	for i, e := range path {
		at := r.path[:keyBytes*(i+1)]
		if b := s.blocks[at]; b != nil {
			tokens += b.tokens
			if b.sure {
				r.sure = tokens
			}
			if b.part {
				for _, x := range slices.Clone(s.reqs) {
					if x.path == at {
						s.cut(x, parentOf(at))
					}
				}
				s.blocks[at] = &shadowBlock{tokens: s.fits(parentOf(at), int(e.Tokens))}
			} else {
				found++
			}
		} else {
			s.blocks[at] = &shadowBlock{tokens: s.fits(parentOf(at), int(e.Tokens))}
		}
		s.blocks[at].uses++
	}
	s.reqs = append(s.reqs, r)
	s.use(r.path)
	s.fit(t.capacity)
	for t.maxReqs > 0 && len(s.reqs) > t.maxReqs {
		s.cut(s.reqs[0], "")
		s.dropped++
	}
	s.same("steps of insert", steps, found)
	s.same("tokens of insert", resident, tokens)
	s.changed(t)
}

func (s *shadow) remove(t *Tree, id string, ok bool) {
	r := s.find(id)
	s.same("remove", ok, r != nil)
	if r != nil {
		s.cut(r, "")
		s.changed(t)
	}
}

func (s *shadow) shrink(t *Tree, id string, tokens int, ok bool) {
	r := s.find(id)
	s.same("shrink", ok, r != nil)
	if r == nil {
		return
	}
	end, next := r.path, ""
	for end != "" && s.depth(end) > tokens {
		end, next = parentOf(end), end
	}
	if next != "" && s.depth(end) < tokens && s.blocks[next].uses == 1 {
		s.cut(r, next)
		r.moved = true
		s.blocks[next].tokens = tokens - s.depth(end)
		s.blocks[next].part = true
	} else {
		s.cut(r, end)
	}
	s.changed(t)
}

// leaf reports whether nothing is resident behind a path.
func (s *shadow) leaf(path string) bool {
	for at := range s.blocks {
		if parentOf(at) == path {
			return false
		}
	}
	return true
}

func (s *shadow) extend(t *Tree, id string, tokens int) {
	r := s.find(id)
	if r == nil {
		return
	}
	if !s.leaf(r.path) || r.moved {
		return
	}
	s.blocks[r.path].tokens += s.fits(r.path, tokens)
	s.fit(t.capacity)
	s.changed(t)
}

func (s *shadow) serve(t *Tree, id string, fresh, ok bool) {
	r := s.find(id)
	s.same("serve", ok, r != nil)
	if r == nil {
		return
	}
	s.same("fresh", fresh, !r.served)
	if !r.served {
		r.served, r.since = true, s.inserts
		for at := r.path; at != ""; at = parentOf(at) {
			s.blocks[at].sure = true
		}
	}
	s.changed(t)
}

func (s *shadow) resend(t *Tree, id string, ok bool) {
	r := s.find(id)
	s.same("resend", ok, r != nil)
	if r == nil {
		return
	}
	s.inserts++
	i := slices.Index(s.reqs, r)
	s.reqs = append(slices.Delete(s.reqs, i, i+1), r)
	if r.served {
		r.since = s.inserts
	}
	s.use(r.path)
	s.changed(t)
}

func (s *shadow) contradict(t *Tree, id string, tokens int, contradicted bool, cut int) {
	r := s.find(id)
	s.same("contradicted", contradicted, r != nil && !r.served && r.sure > tokens)
	if !contradicted {
		return
	}
	for at, b := range s.blocks {
		if _, beyond := s.leaves(at, r, tokens); beyond {
			b.sure = false
		}
	}
	n := 0
	for _, x := range slices.Clone(s.reqs) {
		common, beyond := s.leaves(x.path, r, tokens)
		switch {
		case !beyond || !x.served:
		case x.since < r.since:
			s.cut(x, common)
			n++
		default:
			for at := x.path; at != common; at = parentOf(at) {
				s.blocks[at].sure = true
			}
		}
	}
	s.same("requests cut", cut, n)
	s.changed(t)
}

// leaves returns where a path leaves that of r, and whether it goes on behind a node of r's path that ends behind tokens.
func (s *shadow) leaves(path string, r *shadowRequest, tokens int) (common string, beyond bool) {
	for common = path; !strings.HasPrefix(r.path, common); common = parentOf(common) {
	}
	return common, common != "" && common != path && s.depth(common) > tokens
}

func (s *shadow) clear(t *Tree) {
	s.reqs, s.blocks = nil, nil
	s.changed(t)
}

// use makes a path the most recently used one, its first block last.
func (s *shadow) use(path string) {
	for ; path != ""; path = parentOf(path) {
		s.clock++
		s.blocks[path].used = s.clock
	}
}

// cut makes a request end earlier on its path; at "" it is gone.
func (s *shadow) cut(r *shadowRequest, end string) {
	r.moved = r.moved || r.path != end
	for ; r.path != end; r.path = parentOf(r.path) {
		if b := s.blocks[r.path]; b.uses > 1 {
			b.uses--
		} else {
			delete(s.blocks, r.path)
		}
	}
	if end == "" {
		i := slices.Index(s.reqs, r)
		s.reqs = slices.Delete(s.reqs, i, i+1)
	}
}

// fit drops the least recently used block, as often as needed; requests that end with it end one block earlier.
func (s *shadow) fit(capacity int) {
	for capacity > 0 && s.tokens() > capacity {
		oldest := ""
		for at, b := range s.blocks {
			if oldest == "" || b.used < s.blocks[oldest].used {
				oldest = at
			}
		}
		for _, r := range slices.Clone(s.reqs) {
			if r.path != oldest {
				continue
			}
			s.cut(r, parentOf(oldest))
			if r.path == "" {
				s.dropped++
			}
		}
		if s.blocks[oldest] != nil {
			s.failed("the least recently used block %x is in use", oldest)
			return
		}
	}
}

func (s *shadow) tokens() (n int) {
	for _, b := range s.blocks {
		n += b.tokens
	}
	return n
}

func (s *shadow) depth(path string) (n int) {
	for ; path != ""; path = parentOf(path) {
		n += s.blocks[path].tokens
	}
	return n
}

// fits returns how many of the tokens can be counted behind a path.
func (s *shadow) fits(path string, tokens int) int { return min(tokens, math.MaxInt32-s.depth(path)) }

// changed compares the tree with its shadow.
func (s *shadow) changed(t *Tree) {
	if s.changes++; len(s.reqs) >= small && s.changes%sample != 0 {
		return
	}
	if err := t.Check(); err != nil {
		s.failed("%v", err)
	}
	s.same("number of requests", t.Len(), len(s.reqs))
	s.same("number of dropped requests", t.dropped, s.dropped)
	s.sameBlocks(t)
	s.sameRequests(t)
	if t.capacity > 0 {
		s.sameUse(t)
	}
}

// sameBlocks compares the nodes with the blocks that the requests' paths lead through.
func (s *shadow) sameBlocks(t *Tree) {
	resident := map[string]int{}
	for _, r := range s.reqs {
		for at := r.path; at != ""; at = parentOf(at) {
			resident[at] = s.blocks[at].tokens
		}
	}
	s.same("number of nodes", t.Nodes(), len(resident))
	s.same("tokens", t.Tokens(), s.tokens())
	var walk func(n Node, path string)
	walk = func(n Node, path string) {
		for _, c := range t.Children(nil, n) {
			at := path + key(t.Key(c))
			if tokens, ok := resident[at]; !ok || tokens != t.Depth(c)-t.Depth(n) {
				s.failed("%d tokens at %x, resident: %v, %d tokens", t.Depth(c)-t.Depth(n), at, ok, tokens)
			}
			if b := s.blocks[at]; b != nil {
				s.same("sure block", t.node(c).fan&sure != 0, b.sure)
			}
			delete(resident, at)
			walk(c, at)
		}
	}
	walk(Root, "")
	for _, at := range slices.Sorted(maps.Keys(resident)) {
		s.failed("%x is not in the tree", at)
	}
}

func (s *shadow) sameRequests(t *Tree) {
	n := t.oldest
	for _, r := range s.reqs {
		x := t.reqs.at(n)
		answered, ok := t.Served(r.id)
		s.same("request in order of arrival", x.id, r.id)
		s.same("end of "+r.id, t.path(x.end), r.path)
		s.same("served "+r.id, answered && ok, r.served)
		s.same("sure of "+r.id, int(x.sure), r.sure)
		n = x.newer
	}
}

func (s *shadow) sameUse(t *Tree) {
	byUse := slices.SortedFunc(maps.Keys(s.blocks), func(a, b string) int { return cmp.Compare(s.blocks[a].used, s.blocks[b].used) })
	for i, n := range t.byAge() {
		s.same("block in order of use", t.path(n), byUse[i])
	}
}

func (s *shadow) same(what string, got, want any) {
	if got != want {
		s.failed("%s: %#v, want %#v", what, got, want)
	}
}

func (s *shadow) failed(format string, args ...any) {
	message := "tree: invariant broken: " + fmt.Sprintf(format, args...)
	if s.fail != nil {
		s.fail(message)
		return
	}
	message += "\n" + string(debug.Stack())
	go panic(message) // no caller can recover from it
	select {}
}

// path returns the keys from the root to n.
func (t *Tree) path(n Node) (path string) {
	for ; n != Root; n = t.node(n).parent {
		path = key(t.Key(n)) + path
	}
	return path
}

func parentOf(path string) string { return path[:len(path)-keyBytes] }

func key(k uint64) string { return string(binary.BigEndian.AppendUint64(nil, k)) }
