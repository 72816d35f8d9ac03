package memory

import (
	"context"
	"io"
	"time"
)

// Store keeps memories. Implementations are safe for concurrent use. Every method that takes a scope returns an error that
// wraps [ErrNoScope] if none of its fields is set. What is returned belongs to the caller.
//
// [New] makes one that runs in this process over any [Backend]; a client of a remote server is another.
// memory/memorytest holds what all must do.
type Store interface {
	// Add stores what is worth remembering of the messages, as the store's [Extractor] or that of opts decides, and says what it
	// changed, in the order in which it did; a message that was known already may be reported as [None] or not at all, and one of
	// which nothing is worth remembering is not reported. All changes are made or none: after an error nothing is stored and the
	// call can be repeated.
	Add(ctx context.Context, scope Scope, messages []Message, opts AddOptions) ([]Change, error)
	// Search returns at most k memories for the query, best first; k below 1: [DefaultK]. Equal scores are ordered by
	// creation, the newest first, then by ID, but an update stands in front of what it replaces.
	Search(ctx context.Context, scope Scope, query string, k int, opts SearchOptions) ([]Hit, error)
	// GetAll returns the memories of the scope, the oldest first, then by ID.
	GetAll(ctx context.Context, scope Scope, opts ListOptions) ([]Memory, error)
	// Get returns one memory, also an expired one; an error wraps [ErrNotFound].
	Get(ctx context.Context, id string) (Memory, error)
	// Update changes a memory. The error wraps [ErrNotFound], or [ErrExists] if another memory of its scope has the text.
	Update(ctx context.Context, id string, change Update) (Memory, error)
	// Delete removes a memory and erases its text everywhere in the store, its history included: what stays is that
	// there was one. A memory that is gone already has the remains in its history erased; if there are none the error
	// wraps [ErrNotFound].
	Delete(ctx context.Context, id string, opts DeleteOptions) error
	// DeleteAll does so to all memories of the scope, those that are in the history only included, and returns how many
	// memories it removed.
	DeleteAll(ctx context.Context, scope Scope, opts DeleteOptions) (int, error)
	// History returns the revisions of a memory, the oldest first, also of one that was deleted. The error wraps
	// [ErrNotFound] if there never was one.
	History(ctx context.Context, id string) ([]Revision, error)
	// Reset removes everything.
	Reset(ctx context.Context) error
	// Close releases what the store holds. Calls that run are waited for or fail; later ones fail.
	Close() error
}

// Getter is implemented by stores that return many memories in one call.
type Getter interface {
	// GetMany returns the memories of these IDs that exist and that the options do not leave out, the oldest first, then by ID, each
	// once.
	GetMany(ctx context.Context, ids []string, opts ListOptions) ([]Memory, error)
}

// Porter is implemented by stores that can be written to, and read from, a stream of JSON lines.
type Porter interface {
	// Export writes the memories of the scope and their history, each a line; the zero scope means everything. What is
	// written is what was stored at one moment only if nothing changes meanwhile.
	Export(ctx context.Context, scope Scope, w io.Writer) error
	// Import reads what Export wrote. Memories keep their IDs, times and history; one whose ID exists is replaced, and one
	// whose text another memory of its scope has is left out. Lines are stored some hundred at a time: an error names the
	// line, and what came before it may be stored. Importing the same lines again changes nothing.
	Import(ctx context.Context, r io.Reader) (Imported, error)
}

// Imported counts what [Porter.Import] read.
type Imported struct {
	Memories, Revisions int
	// Skipped are memories whose text the scope has under another ID.
	Skipped int
}

// MessageLog is implemented by stores that also keep conversations as they were, message by message.
type MessageLog interface {
	// AppendMessages adds to the end of a scope's conversation. The scope here is one key: its fields are compared exactly.
	AppendMessages(ctx context.Context, scope Scope, messages ...Message) error
	// Messages returns the conversation, the oldest message first; last > 0: only so many from its end.
	Messages(ctx context.Context, scope Scope, last int) ([]Message, error)
	// SetMessages replaces the conversation; nothing removes it.
	SetMessages(ctx context.Context, scope Scope, messages []Message) error
}

// DefaultK is how many memories a search returns by default.
const DefaultK = 20

// AddOptions are the rarer arguments of [Store.Add].
type AddOptions struct {
	// Metadata is stored with each memory that is added or updated; anything that encoding/json can write.
	Metadata map[string]any
	// ExpiresAt is when these memories stop being found; zero: never.
	ExpiresAt time.Time
	// Extractor replaces the store's own; [Everything] stores messages as they are, and [Verbatim] their statements. A
	// remote store may refuse others.
	Extractor Extractor
	// Instructions are added to the prompt of extractors that ask a model.
	Instructions string
}

// SearchOptions are the rarer arguments of [Store.Search].
type SearchOptions struct {
	// Filter leaves out what does not match.
	Filter Filter
	// Threshold is the semantic score below which a memory is not found, whatever its words, or the lexical one if the embedder is
	// not ready (of a memory that has no vector yet, 0.6 times the lexical one); 0 or less:
	// every memory may be found, however little it has to do with the query.
	Threshold float64
	// Expired finds expired memories too.
	Expired bool
}

// ListOptions are the arguments of [Store.GetAll].
type ListOptions struct {
	Filter Filter
	// Limit bounds the result; 0: all.
	Limit int
	// Expired lists expired memories too.
	Expired bool
}

// Update is a change of one memory; what is nil stays.
type Update struct {
	Text      *string
	Metadata  map[string]any // replaces all of it; an empty map removes it
	ExpiresAt *time.Time     // a zero time: never
}

// DeleteOptions are the arguments of [Store.Delete].
type DeleteOptions struct {
	// KeepHistory leaves the texts in the history.
	KeepHistory bool
}
