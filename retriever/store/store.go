package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Searcher finds documents. Implementations are safe for concurrent use.
type Searcher interface {
	// Search returns the at most q.K documents that fit best, best first, equal scores in the order of their IDs
	// (compared byte by byte). The caller owns the result. Errors wrap those of this package, or the cause of the
	// context's end.
	Search(ctx context.Context, q Query) ([]Hit, error)
}

// Query is one search.
type Query struct {
	// Text is the question, as plain text: nothing in it is an operator.
	Text string
	// K bounds the number of hits; at least 1.
	K int
	// Tenant restricts the search to one tenant's documents. Stores without tenants refuse one, stores with
	// tenants refuse a query without: forgetting it never shows what belongs to others.
	Tenant string
	// Filter restricts the search to documents whose metadata fits. The zero Filter fits all.
	Filter Filter
}

// Document is one text to be stored: what becomes a block when it is found.
type Document struct {
	// ID is chosen by the caller, the same each time the document is indexed, and unique within a tenant. It is not
	// empty and is valid UTF-8.
	ID string
	// Text is what the model will read. Each run of bytes that are not UTF-8 is stored as U+FFFD.
	Text string
	// Metadata is given back with each hit and can be filtered by. Values are nil, strings, booleans, numbers, and
	// []any and map[string]any of these.
	Metadata map[string]any
	// Tenant owns the document; see [Query.Tenant].
	Tenant string
}

// Hit is a document that was found.
type Hit struct {
	// ID is the document's.
	ID string
	// Text is the document's.
	Text string
	// Score is larger for what fits better. It can be compared within one result only.
	Score float64
	// Version names the text, see [Version]: it changes when the document gets another text, and only then.
	Version string
	// Metadata is the document's. A whole number may come back as int64 or float64, whichever the store keeps.
	Metadata map[string]any
}

// Block returns the hit as a block of a request.
func (h Hit) Block() contextpilot.Block {
	return contextpilot.Block{ID: h.ID, Text: h.Text, Score: h.Score}
}

// Blocks returns the hits as the blocks of a request, in their order.
func Blocks(hits []Hit) []contextpilot.Block {
	out := make([]contextpilot.Block, len(hits))
	for i, h := range hits {
		out[i] = h.Block()
	}
	return out
}

// Sort puts hits into the order in which [Searcher] gives them: by score, the best first, then by ID. Servers break
// ties as they are stored, so that the same question would give another prompt after each rebuild of the index.
func Sort(hits []Hit) {
	slices.SortFunc(hits, func(a, b Hit) int {
		if c := cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID)); c != 0 {
			return c
		}
		return strings.Compare(a.Text, b.Text) // several indexes behind one name can know one ID
	})
}

// Version returns the version of a text as it is stored: half of its SHA-256, as 32 hexadecimal digits.
func Version(text string) string {
	sum := sha256.Sum256([]byte(ValidText(text)))
	return hex.EncodeToString(sum[:16])
}

// ValidText returns the text as it is stored: each run of invalid UTF-8 becomes U+FFFD.
func ValidText(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

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

// Errors of stores, for errors.Is. Each is wrapped with what was being done and with what the server said.
var (
	// ErrUnavailable: the store cannot be reached, is overloaded or is shutting down. Later may be better.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrUnauthorized: the store refused the credentials, or does not let them do this.
	ErrUnauthorized = errors.New("store refused the credentials")
	// ErrNoIndex: the index, or collection, does not exist.
	ErrNoIndex = errors.New("index does not exist")
	// ErrBadQuery: the query cannot be answered: it is empty, K is below 1, the tenant is missing, or a filter or
	// vector does not fit the index.
	ErrBadQuery = errors.New("bad query")
	// ErrBadDocument: a document cannot be stored, or what is stored cannot be read as a document.
	ErrBadDocument = errors.New("bad document")
	// ErrBadOption: an option of langchaingo's vectorstores cannot be honoured by the store, or by this method of it. The
	// error names it.
	ErrBadOption = errors.New("option cannot be honoured")
	// ErrDimension: a vector has another length than the index wants. Such an error is also an ErrBadQuery or an
	// ErrBadDocument.
	ErrDimension = errors.New("vector has the wrong length")
	// ErrClosed: the store was used after Close.
	ErrClosed = errors.New("store is closed")
)
