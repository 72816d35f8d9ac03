package compat

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"

	"github.com/ragpilot/ragpilot/internal/paper"
)

// key is the identity of a document. Strings are known by their hash, so that tables do not grow with their length.
type key struct {
	kind uint8
	a, b uint64
}

const (
	number      = iota // a is the integer
	largeNumber        // an integer of more than 64 bits: hash of its digits
	word               // hash of the string
)

func hashed(kind uint8, b []byte) key {
	h := sha256.Sum256(b)
	return key{kind, binary.LittleEndian.Uint64(h[:8]), binary.LittleEndian.Uint64(h[8:16])}
}

// doc is a document of a batch.
type doc struct {
	key   key
	value value     // as it came first
	seen  int64     // of a string: when it was seen first
	live  paper.Doc // its number in the live index
}

// name is how hints call the document.
func (d doc) name() string {
	if d.value.kind == kindText {
		return d.value.text()
	}
	return string(d.value.raw)
}

// batch is a list of contexts. Documents are numbered from 0 over the whole batch, by first sight or, after sort, in
// the order in which a shared prefix is listed.
type batch struct {
	strings  bool
	contexts []listing
	docs     []doc // by number
	place    []int // scratch: number → position in a context
}

// listing is one context: its items as they came and which document each is, its distinct documents, where each of
// these stands first, and where the items stand that repeat one.
type listing struct {
	items        []value
	all, docs    []paper.Doc
	first, again []int
}

// contexts reads a list of lists of documents. All documents must be integers, or all strings. Of what is too large nothing is
// read; done reports it.
func (d *decoder) contexts(name string, most limits) *batch {
	lists := d.requiredList(name)
	if d.tooLarge(name, len(lists), most.contexts) {
		return &batch{}
	}
	b := newBatch(lists)
	total := 0
	for i, v := range lists {
		items := d.list(v, name, i)
		if d.tooLarge(fmt.Sprintf("%s[%d]", name, i), len(items), maxContext) {
			return &batch{}
		}
		b.contexts[i].items = items
		total += len(items)
	}
	if d.tooLarge("the lists of "+name, total, most.blocks) {
		return &batch{}
	}
	numbers := map[key]paper.Doc{}
	for i := range b.contexts {
		d.listing(b, i, numbers, name, i)
	}
	return b
}

// context reads one list of documents as a batch of one context.
func (d *decoder) context(name string, most limits) *batch {
	items := d.requiredList(name)
	if d.tooLarge(name, len(items), min(maxContext, most.blocks)) {
		return &batch{}
	}
	b := newBatch([]value{{items: items}})
	b.contexts[0].items = items
	d.listing(b, 0, map[key]paper.Doc{}, name)
	return b
}

// maxContext is how many documents one context may have: placing one takes time by their square, with the lock held.
const maxContext = 2048

// tooLarge reports whether there are more than limit items, and notes it: the first that is too large is the answer.
func (d *decoder) tooLarge(what string, n, limit int) bool {
	if n > limit && d.refused == nil {
		d.refused = fail(http.StatusRequestEntityTooLarge, fmt.Sprintf("%s: %d items, at most %d are allowed", what, n, limit))
	}
	return n > limit
}

// newBatch returns a batch of that many contexts. The first document that is a number or a string says what all are.
func newBatch(lists []value) *batch {
	b := &batch{contexts: make([]listing, len(lists))}
	for _, l := range lists {
		for _, v := range l.items {
			switch v.kind {
			case kindText:
				b.strings = true
				return b
			case kindInt, kindFloat:
				return b
			}
		}
	}
	return b
}

// listing numbers the items of context i, which stands at loc.
func (d *decoder) listing(b *batch, i int, numbers map[key]paper.Doc, loc ...any) {
	c := &b.contexts[i]
	c.all, c.docs = make([]paper.Doc, len(c.items)), make([]paper.Doc, 0, len(c.items))
	c.first = make([]int, 0, len(c.items))
	here := make(map[paper.Doc]bool, len(c.items))
	for j, v := range c.items {
		k, bad := identify(v, b.strings)
		if bad.msg != "" {
			d.wrong(bad.kind, bad.msg, v, append(slices.Clip(loc), j)...)
			continue
		}
		n, known := numbers[k]
		if !known {
			n = paper.Doc(len(b.docs))
			numbers[k] = n
			b.docs = append(b.docs, doc{key: k, value: v, seen: int64(n)})
		}
		c.all[j] = n
		if here[n] {
			c.again = append(c.again, j)
			continue
		}
		here[n] = true
		c.docs, c.first = append(c.docs, n), append(c.first, j)
	}
}

// identify returns the identity of a document, or what is wrong with it.
func identify(v value, asString bool) (key, whole) {
	switch {
	case asString && v.kind == kindText:
		return hashed(word, []byte(v.text())), whole{}
	case asString:
		return key{}, whole{kind: "string_type", msg: "Input should be a valid string"}
	case v.kind == kindInt:
		n, err := strconv.ParseInt(string(v.raw), 10, 64)
		if errors.Is(err, strconv.ErrRange) {
			return hashed(largeNumber, v.raw), whole{}
		}
		return key{kind: number, a: uint64(n)}, whole{}
	case v.kind == kindFloat:
		w := wholeNumber(v)
		return key{kind: number, a: uint64(w.n)}, w
	}
	return key{}, whole{kind: "int_type", msg: "Input should be a valid integer"}
}

// sort numbers the documents anew: integers ascending, strings by when they were seen first.
func (b *batch) sort() {
	order := make([]paper.Doc, len(b.docs))
	for i := range order {
		order[i] = paper.Doc(i)
	}
	before := func(x, y paper.Doc) int { return b.docs[x].compare(b.docs[y]) }
	if slices.IsSortedFunc(order, before) {
		return
	}
	slices.SortFunc(order, before)
	docs, now := make([]doc, len(order)), make([]paper.Doc, len(order))
	for i, old := range order {
		docs[i], now[old] = b.docs[old], paper.Doc(i)
	}
	b.docs = docs
	for _, c := range b.contexts {
		for i, old := range c.docs {
			c.docs[i] = now[old]
		}
		for i, old := range c.all {
			c.all[i] = now[old]
		}
	}
}

func (d doc) compare(e doc) int {
	switch {
	case d.key.kind == word:
		return cmp.Compare(d.seen, e.seen)
	case d.key.kind == number && e.key.kind == number:
		return cmp.Compare(int64(d.key.a), int64(e.key.a))
	}
	return d.big().Cmp(e.big())
}

func (d doc) big() *big.Int {
	if d.key.kind == number {
		return big.NewInt(int64(d.key.a))
	}
	n, _ := new(big.Int).SetString(string(d.value.raw), 10)
	return n
}

// sets returns the distinct documents of each context.
func (b *batch) sets() [][]paper.Doc {
	out := make([][]paper.Doc, len(b.contexts))
	for i, c := range b.contexts {
		out[i] = c.docs
	}
	return out
}

// live returns the documents of context i by their numbers in the live index, which take has filled in.
func (b *batch) live(i int) []paper.Doc {
	out := make([]paper.Doc, len(b.contexts[i].docs))
	for j, n := range b.contexts[i].docs {
		out[j] = b.docs[n].live
	}
	return out
}

// positions turns an order of context i's documents into positions of its items; those that repeat one come last.
func (b *batch) positions(i int, order []paper.Doc) []int {
	c := b.contexts[i]
	if len(b.place) < len(b.docs) {
		b.place = make([]int, len(b.docs))
	}
	for j, n := range c.docs {
		b.place[n] = c.first[j]
	}
	out := make([]int, 0, len(c.items))
	for _, n := range order {
		out = append(out, b.place[n])
	}
	return append(out, c.again...)
}

// inputType is the word of answers for what the documents are.
func (b *batch) inputType() string {
	if b.strings {
		return "string"
	}
	return "integer"
}

// render writes the items at these positions as a JSON list, each as it came.
func (c listing) render(positions []int) json.RawMessage {
	size := 2
	for _, p := range positions {
		size += len(c.items[p].raw) + 1
	}
	out := append(make([]byte, 0, size), '[')
	for i, p := range positions {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, c.items[p].raw...)
	}
	return append(out, ']')
}
