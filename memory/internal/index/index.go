package index

import (
	"time"
	"unsafe"

	"github.com/ragpilot/ragpilot/memory/internal/lexical"
)

// Entry is a memory as it is found.
type Entry struct {
	ID       string
	Text     string
	Entities []string
	// Second marks what comes behind another memory of the same score, whatever its age: what an assistant said.
	Second  bool
	Created time.Time
	Expires time.Time // zero: never
	// Vector is compared by its direction. nil: the memory is found by its words alone.
	Vector []float32
}

// Index is the memories of a scope. The zero value is not usable, see [New].
type Index struct {
	entries []entry
	places  map[string]int32 // ID → index into entries
	dead    int              // entries that were removed
	words   vocabulary
	stems   []stem   // of all entries, one after the other
	phrases []uint32 // likewise
	length  int      // stems of the entries that live, repeats counted
	names   vocabulary
	named   int // names of all entries
	vectors vectors
	bare    int // entries that live and have no vector
}

// entry is what is kept of a memory beside its vector.
type entry struct {
	id               string
	created, expires int64 // microseconds since 1970; expires 0: never
	first, last      int32 // its part of Index.stems
	phrase           int32 // the first of its part of Index.phrases, which is as long as phrased says
	length           int32 // stems, repeats counted
	entities         []int32
	phrased          uint8
	firstPerson      bool
	second           bool
	bare             bool
	dead             bool
}

// stem is a stem of an entry: its number in the vocabulary above how often it stands there, which is counted to 255.
type stem uint32

func newStem(word int32, count int) stem { return stem(word)<<8 | stem(min(count, 255)) } //nolint:gosec // bounded by maxWords

func (s stem) word() int32 { return int32(s >> 8) }
func (s stem) count() int  { return int(s & 255) }

// New returns an empty index.
func New() *Index {
	return &Index{places: map[string]int32{}, words: newVocabulary(), names: newVocabulary()}
}

// Len is how many memories there are.
func (x *Index) Len() int { return len(x.entries) - x.dead }

// Wasted reports whether so many entries were removed or replaced that it is time to make the index anew.
func (x *Index) Wasted() bool { return x.dead > 1000 && x.dead > len(x.entries)/4 }

// Bytes is about what the index takes.
func (x *Index) Bytes() int64 {
	const idBytes, mapBytes = 40, 56
	each := int64(unsafe.Sizeof(entry{})) + idBytes + mapBytes
	return int64(len(x.entries))*each + int64(cap(x.stems)+cap(x.phrases)+x.named)*4 + x.words.bytes() + x.names.bytes() + x.vectors.bytes()
}

// Put adds a memory, or replaces the one of its ID. The entry's slices are not kept.
func (x *Index) Put(e *Entry) {
	x.Remove(e.ID)
	first := int32(len(x.stems)) //nolint:gosec // fewer than 2^31
	terms := lexical.Terms(e.Text)
	phrases := lexical.Phrases(terms)
	length := x.addStems(lexical.StemsOf(terms))
	x.length += length
	x.places[e.ID] = int32(len(x.entries)) //nolint:gosec // fewer than 2^31
	names := x.names.numbers(e.Entities)
	x.named += len(names)
	x.entries = append(x.entries, entry{
		id: e.ID, created: micros(e.Created), expires: micros(e.Expires), first: first, last: int32(len(x.stems)), length: int32(length), //nolint:gosec // as above
		phrase: int32(len(x.phrases)), phrased: uint8(len(phrases)), firstPerson: lexical.FirstPerson(terms), //nolint:gosec // at most lexical.MaxPhrases
		entities: names, second: e.Second, bare: len(e.Vector) == 0,
	})
	x.phrases = append(x.phrases, phrases...)
	if len(e.Vector) == 0 {
		x.bare++
	}
	x.vectors.add(e.Vector)
}

// addStems appends the stems of a text, each once, and returns how many it has, repeats counted.
func (x *Index) addStems(stems []string) int {
	counts := make(map[int32]int, len(stems))
	order := make([]int32, 0, len(stems))
	for _, s := range stems {
		word, ok := x.words.number(s)
		if !ok {
			continue
		}
		if counts[word] == 0 {
			order = append(order, word)
		}
		counts[word]++
	}
	for _, word := range order {
		x.stems = append(x.stems, newStem(word, counts[word]))
	}
	return len(stems)
}

// Remove takes a memory away, if it is there.
func (x *Index) Remove(id string) {
	place, ok := x.places[id]
	if !ok {
		return
	}
	delete(x.places, id)
	e := &x.entries[place]
	x.length -= int(e.length)
	x.dead++
	if e.bare {
		x.bare--
	}
	*e = entry{dead: true}
}

// micros is 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
