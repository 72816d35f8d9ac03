package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// Memory is one short text that is remembered. Times are UTC in whole microseconds.
type Memory struct {
	// ID is a UUID; an update keeps it.
	ID string `json:"id"`
	// Text is what a model reads.
	Text string `json:"text"`
	// Hash is [HashOf] the text: equal texts of one scope are stored once.
	Hash  string `json:"hash"`
	Scope Scope  `json:"scope"`
	// Role says who it was learned from, for example "user", and Actor that one's name; both may be empty.
	Role  string `json:"role,omitempty"`
	Actor string `json:"actor,omitempty"`
	// Metadata are the caller's own fields, for filters: values as encoding/json decodes them, so numbers are float64.
	Metadata map[string]any `json:"metadata,omitempty"`

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	// ExpiresAt is when the memory stops being found; zero: never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// Expired reports whether the memory is hidden at that time.
func (m *Memory) Expired(now time.Time) bool {
	return !m.ExpiresAt.IsZero() && !m.ExpiresAt.After(now)
}

// BlockID returns the identity of the memory as a block of a prompt: a hash of its text and scope, of 64 bits. A
// memory that is updated is another block, and nothing else about a memory changes it.
func (m *Memory) BlockID() string {
	h := sha256.New()
	for _, s := range []string{m.Scope.User, m.Scope.Agent, m.Scope.Run, m.Text} {
		_, _ = h.Write([]byte(strconv.Itoa(len(s)) + ":" + s)) // never fails (hash.Hash)
	}
	return "m-" + hex.EncodeToString(h.Sum(nil)[:8])
}

// HashOf returns the hash by which repeats of a text are recognised, 32 hexadecimal digits.
func HashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Role says who speaks in a message.
type Role string

// The roles that extractors know. Others are kept as they are and treated like that of a user.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is a part of a conversation.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
	// Name is the speaker's, if there are several of one role.
	Name string `json:"name,omitempty"`
	// Extra is what a framework needs to get its own message back, as JSON; nothing here reads it.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// Event says what became of a memory.
type Event string

// The events of Mem0.
const (
	Added   Event = "ADD"
	Updated Event = "UPDATE"
	Deleted Event = "DELETE"
	None    Event = "NONE" // known already, or nothing to do
)

// Change is what an [Store.Add] did to one memory.
type Change struct {
	ID    string `json:"id"`
	Event Event  `json:"event"`
	// Text is the memory's text afterwards, or before if it was deleted.
	Text string `json:"text"`
	// Old is the text before an update.
	Old string `json:"old_text,omitempty"`
}

// Revision is one row of a memory's history.
type Revision struct {
	ID       string `json:"id"`
	MemoryID string `json:"memory_id"`
	Event    Event  `json:"event"`
	Scope    Scope  `json:"scope"`
	// Old and New are the texts before and after; both are empty in all rows of a memory whose text was erased.
	Old   string    `json:"old_text,omitempty"`
	New   string    `json:"new_text,omitempty"`
	Role  string    `json:"role,omitempty"`
	Actor string    `json:"actor,omitempty"`
	At    time.Time `json:"at"`
}

// Hit is a memory that was found, with its score and what the score is made of.
type Hit struct {
	Memory Memory `json:"memory"`
	// Score is from 0 to 1.
	Score float64 `json:"score"`
	// Semantic is the cosine of the vectors, 0 without them. Lexical is the BM25 score as a share of what a memory could have that
	// has all words of the query. Both are from 0 to 1.
	Semantic float64 `json:"semantic"`
	Lexical  float64 `json:"lexical"`
	// Entity is the boost for a name that query and memory have in common, from 0 to 1.
	Entity float64 `json:"entity,omitempty"`
}
