package memory

import "context"

// Record is a memory with what it is found by.
type Record struct {
	Memory Memory
	// Vector is the embedding of the text; empty: it has not been made yet.
	Vector []float32
	// Entities are names of what the text is about: words in lower case, separated by single spaces, each name once.
	Entities []string
}

// Part says which records a [Backend.Scan] reports, and which of their fields it has to fill.
type Part uint8

const (
	// Memories: Memory.
	Memories Part = iota
	// Whole: Memory, Vector and Entities.
	Whole
	// Unembedded: Memory, of the records without a vector only.
	Unembedded
)

// Space is what the vectors of a backend have in common. The zero Space is that of a backend that has no vectors.
type Space struct {
	Dimensions int
	Embedder   string // its name, see embed.Named; empty: unknown
}

// State is what [Backend.Follow] has seen.
type State struct {
	// Version counts the changes of the backend; 0: nothing was seen.
	Version int64
	Space   Space
}

// Changes receives what [Backend.Follow] reports: Reset first if all is reported anew, then removals, then the records that were
// added or changed.
type Changes struct {
	// Reset: what was reported before is not valid any more.
	Reset func()
	// Remove is called with IDs of records that were removed, of other scopes as well.
	Remove func(id string)
	// Put is called with records of which a search needs ID, Text, Role, CreatedAt, ExpiresAt, Entities and Vector: others may be empty. It
	// must not keep their slices.
	Put func(r *Record)
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
	// Follow reports what has changed in a scope since the version that an earlier call returned for the same scope, 0 at first. A
	// backend that cannot say what has changed reports all records anew. It sees one state of the backend, which it returns.
	// The functions must not use the backend.
	Follow(ctx context.Context, scope Scope, since int64, to Changes) (State, error)
	// History calls yield for the revisions of a memory, "" for all, that the scope covers, in the order in which they were written, until
	// it returns false. What holds for the yield of Scan holds for this one.
	History(ctx context.Context, scope Scope, memoryID string, yield func(r *Revision) bool) error
	// Messages returns a log's messages, the oldest first; last > 0: only so many from its end.
	Messages(ctx context.Context, log Log, last int) ([]Message, error)
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
	// Erase removes the texts from the history of a memory, "" for all, that the scope covers, and returns how many rows had one.
	Erase(ctx context.Context, scope Scope, memoryID string) (int, error)
	// SetMessages replaces a log's messages.
	SetMessages(ctx context.Context, log Log, messages []Message) error
	// AppendMessages adds to a log; keep > 0: only so many from its end stay.
	AppendMessages(ctx context.Context, log Log, messages []Message, keep int) error
	// DropMessages removes the logs of this kind whose scope is covered.
	DropMessages(ctx context.Context, kind string, scope Scope) error
	// Space returns the space.
	Space(ctx context.Context) (Space, error)
	// SetSpace replaces the space.
	SetSpace(ctx context.Context, space Space) error
	// DropVectors removes the vectors of all records.
	DropVectors(ctx context.Context) error
}
