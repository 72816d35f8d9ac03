package memory

import "context"

// Record is a memory with what it is found by.
type Record struct {
	Memory Memory
	// Vector is the embedding of the text.
	Vector []float32
	// Terms are the words of the text for BM25, in their order and with repeats: letters and digits only, never empty.
	Terms []string
	// Entities are names of what the text is about: words in lower case, separated by single spaces, each name once.
	Entities []string
}

// Part says which fields of its records a [Backend.Scan] has to fill.
type Part uint8

const (
	// Vectors: Memory.ID, CreatedAt and ExpiresAt, Vector and Entities.
	Vectors Part = iota
	// Memories: Memory.
	Memories
	// Whole: Memory, Vector and Entities.
	Whole
)

// Space is what the vectors of a backend have in common.
type Space struct {
	Dimensions int
	Embedder   string // its name, see embed.Named; empty: unknown
}

// Posting is a memory that contains some of the terms that were asked for.
type Posting struct {
	ID    string
	Terms []string // all of its terms
}

// Lexicon is what BM25 needs to know of a scope.
type Lexicon struct {
	Memories int // in the scope
	Terms    int // of all of them together
	Postings []Posting
}

// Log names a list of messages: one of several of a scope, compared exactly.
type Log struct {
	Scope Scope
	Kind  string
}

// Backend is where a [Local] keeps its records: it stores and finds them and decides nothing. It is safe for
// concurrent use. A scope given to it selects all records that it covers, see [Scope.Covers]; the zero scope selects
// everything. What it is given it copies or does not change; what it returns belongs to the caller.
// memory/memorytest.RunBackend holds what all must do.
type Backend interface {
	// Change calls f in one transaction: if f or the commit fails, nothing has changed; if Change returns nil, what f did
	// has been written and outlives the process, where the backend is one that does. Transactions run one after the
	// other, over all processes that share the backend. f must not use the backend but through tx.
	Change(ctx context.Context, f func(tx Tx) error) error
	// Get returns the memories of these IDs that exist, in any order.
	Get(ctx context.Context, ids []string) ([]Memory, error)
	// Scan calls yield for the records of a scope, in any order, until it returns false. It sees one state of the
	// backend. yield must not use the backend and must not keep the record's slices.
	Scan(ctx context.Context, scope Scope, part Part, yield func(r *Record) bool) error
	// Lexicon returns the records of a scope that contain any of the terms.
	Lexicon(ctx context.Context, scope Scope, terms []string) (Lexicon, error)
	// History returns the revisions of a memory in the order in which they were written.
	History(ctx context.Context, memoryID string) ([]Revision, error)
	// ScopeHistory calls yield for the revisions of a scope, in the order in which they were written, until it returns
	// false. What holds for the yield of Scan holds for this one.
	ScopeHistory(ctx context.Context, scope Scope, yield func(r *Revision) bool) error
	// Messages returns a log's messages, the oldest first; last > 0: only so many from its end.
	Messages(ctx context.Context, log Log, last int) ([]Message, error)
	// Space records the space if the backend has none, and returns the one it has.
	Space(ctx context.Context, space Space) (Space, error)
	// Reset removes everything, the space included.
	Reset(ctx context.Context) error
	// Close releases what the backend holds.
	Close() error
}

// Tx is a transaction of a [Backend]. It sees its own changes and is used by one goroutine.
type Tx interface {
	// Get returns a memory.
	Get(ctx context.Context, id string) (m Memory, ok bool, err error)
	// Find returns the memory of exactly this scope with this hash.
	Find(ctx context.Context, scope Scope, hash string) (m Memory, ok bool, err error)
	// IDs returns the memories that the scope covers, in any order.
	IDs(ctx context.Context, scope Scope) ([]string, error)
	// Put stores a record in place of that of the same ID, if there is one.
	Put(ctx context.Context, r *Record) error
	// SetVector replaces the vector of a memory that exists.
	SetVector(ctx context.Context, id string, vector []float32) error
	// Remove removes a record and all that can be found of it outside of the history; ok: it was there.
	Remove(ctx context.Context, id string) (ok bool, err error)
	// Append writes a row of history; one whose ID is there already is left as it is, and fresh is false.
	Append(ctx context.Context, r *Revision) (fresh bool, err error)
	// Erase removes the texts from the history of a memory and returns how many rows had one.
	Erase(ctx context.Context, memoryID string) (int, error)
	// EraseScope does so for all rows that the scope covers.
	EraseScope(ctx context.Context, scope Scope) (int, error)
	// SetMessages replaces a log's messages.
	SetMessages(ctx context.Context, log Log, messages []Message) error
	// AppendMessages adds to a log; keep > 0: only so many from its end stay.
	AppendMessages(ctx context.Context, log Log, messages []Message, keep int) error
	// DropMessages removes the logs of this kind whose scope is covered.
	DropMessages(ctx context.Context, kind string, scope Scope) error
	// SetSpace replaces the space.
	SetSpace(ctx context.Context, space Space) error
}
