package store

import "fmt"

// Mode says what a search compares. Stores that can compare only words have no such option.
type Mode int

// Modes of a search.
const (
	// Auto compares all that the store is opened for: Hybrid, or else the one of Lexical and Dense.
	Auto Mode = iota
	// Lexical compares words: BM25, or sparse vectors.
	Lexical
	// Dense compares vectors of meaning.
	Dense
	// Hybrid does both and fuses the two results.
	Hybrid
)

// String returns the mode's name, such as "lexical".
func (m Mode) String() string {
	names := [...]string{"auto", "lexical", "dense", "hybrid"}
	if m < 0 || int(m) >= len(names) {
		return fmt.Sprintf("Mode(%d)", int(m))
	}
	return names[m]
}
