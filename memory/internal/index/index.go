package index

import (
	"slices"
	"strings"
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
	links   []int32 // names of all entries, one after the other
	vectors vectors
	bare    int     // entries that live and have no vector
	scratch []int32 // of addStems
}

// entry is what is kept of a memory beside its vector.
type entry struct {
	id               string
	created, expires int64 // microseconds since 1970; expires 0: never
	stems, links     part  // of Index.stems and Index.links
	phrases          part  // of Index.phrases
	length           int32 // stems, repeats counted
	firstPerson      bool
	second           bool
	bare             bool
	dead             bool
}

// part is what of a slice that all share belongs to an entry.
type part struct{ first, last int32 }

func newPart(first, last int) part { return part{int32(first), int32(last)} } //nolint:gosec // fewer than 2^31

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
	return int64(len(x.entries))*each + int64(cap(x.stems)+cap(x.phrases)+cap(x.links))*4 + x.words.bytes() + x.names.bytes() +
		x.vectors.bytes()
}

// Put adds a memory, or replaces the one of its ID. The entry's slices are not kept.
func (x *Index) Put(e *Entry) {
	x.Remove(e.ID)
	terms := lexical.Terms(e.Text)
	stems, phrases, links := len(x.stems), len(x.phrases), len(x.links)
	x.phrases = lexical.AppendPhrases(x.phrases, terms)
	length := x.addStems(lexical.StemsOf(terms))
	x.length += length
	x.links = x.names.appendNumbers(x.links, e.Entities)
	x.places[e.ID] = int32(len(x.entries)) //nolint:gosec // fewer than 2^31
	x.entries = append(x.entries, entry{
		id: e.ID, created: micros(e.Created), expires: micros(e.Expires), length: int32(length), //nolint:gosec // as above
		stems: newPart(stems, len(x.stems)), phrases: newPart(phrases, len(x.phrases)), links: newPart(links, len(x.links)),
		firstPerson: lexical.FirstPerson(terms), second: e.Second, bare: len(e.Vector) == 0,
	})
	if len(e.Vector) == 0 {
		x.bare++
	}
	x.vectors.add(e.Vector)
}

// addStems appends the stems of a text, each once, and returns how many it has, repeats counted.
func (x *Index) addStems(stems []string) int {
	x.scratch = x.words.appendNumbers(x.scratch[:0], stems)
	slices.Sort(x.scratch)
	for i := 0; i < len(x.scratch); {
		word, first := x.scratch[i], i
		for i < len(x.scratch) && x.scratch[i] == word {
			i++
		}
		x.stems = append(x.stems, newStem(word, i-first))
	}
	clear(x.scratch)
	return len(stems)
}

// Remove takes a memory away, if it is there. Of what it was found by, words stay in the vocabularies, without what had them.
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
	clear(x.stems[e.stems.first:e.stems.last])
	clear(x.phrases[e.phrases.first:e.phrases.last])
	clear(x.links[e.links.first:e.links.last])
	x.vectors.erase(int(place))
	*e = entry{dead: true}
}

// micros is 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// maxWords bounds a vocabulary: numbers have 24 bits beside a count in 8. Words beyond it are not found.
const maxWords = 1<<24 - 1

// vocabulary numbers words.
type vocabulary struct {
	of    map[string]int32
	words []string
	size  int64 // bytes of the words
}

func newVocabulary() vocabulary { return vocabulary{of: map[string]int32{}} }

// number returns the number of a word, which it may be given now; ok is false if the vocabulary is full.
func (v *vocabulary) number(word string) (n int32, ok bool) {
	n, ok = v.of[word]
	if ok || len(v.words) >= maxWords {
		return n, ok
	}
	n = int32(len(v.words))    //nolint:gosec // at most maxWords
	word = strings.Clone(word) // it may be a part of a longer text, which would be kept with it
	v.of[word] = n
	v.words = append(v.words, word)
	v.size += int64(len(word))
	return n, true
}

// appendNumbers appends the numbers of words. Those that the vocabulary has no room for are left out.
func (v *vocabulary) appendNumbers(to []int32, words []string) []int32 {
	for _, w := range words {
		if n, ok := v.number(w); ok {
			to = append(to, n)
		}
	}
	return to
}

func (v *vocabulary) bytes() int64 {
	const each = 16 + 40 // the string's header, and an entry of the map
	return int64(len(v.words))*each + v.size
}
