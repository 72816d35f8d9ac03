package conversation

import "github.com/zeebo/xxh3"

// Role says who wrote a text. The order is the order of trust, the least trusted first.
type Role uint8

// The roles.
const (
	Other Role = iota
	Tool
	Assistant
	User
	System
)

// Text is one text of a message.
type Text struct {
	Value string
	Role  Role   // its own: the result of a tool inside a user's message is Tool
	Call  string // the ID of the call that a result answers, "" if it is not known
	Tool  string // the name of the tool, if the message says it; else that of the call is used
	// At is where the front end finds the text again, in whatever form: it comes back in an [Edit] or a [Plan], also of a message that is not
	// loaded because its Sum is known.
	At uint64
	// Rows permits to replace blocks of lines that stand further up, and to refer to its own.
	Rows bool
	// Fixed is never changed, nor fenced; others may refer to it.
	Fixed bool
	// Opaque is a piece of another format, such as JSON. It is not planned. What a tool wrote in it is only fenced, with characters
	// that need no escape in JSON.
	Opaque bool
}

// Call is a call of a tool that a message makes.
type Call struct{ ID, Tool string }

// Message is one message of a conversation.
type Message struct {
	Role  Role
	Texts []Text
	Calls []Call
}

// Sum stands for the bytes of a message.
type Sum = xxh3.Uint128

// Source is a conversation as a front end holds it. It is read by one goroutine at a time.
type Source interface {
	// Len is the number of messages.
	Len() int
	// Sum stands for all that the engine would read of message i: its texts, images and whatever else it holds.
	Sum(i int) Sum
	// Role is message i's, as Load says it.
	Role(i int) Role
	// Load writes message i into m, whose slices may be used again. It is called for messages that are not remembered.
	// Strings are not kept longer than the request.
	Load(i int, m *Message)
}

// Edit replaces one text of a message. All other texts keep their bytes.
type Edit struct {
	Message, Text int    // indices in the [Source], and in the loaded message
	At            uint64 // the text's
	With          string // the whole new text, as Options.Encode writes it
}

// Kind says what a [Change] did.
type Kind uint8

// The kinds of changes.
const (
	Ordered   Kind = iota + 1 // documents were put into another order
	LeftOut                   // documents that stand further up were left out
	Collapsed                 // all documents stand further up: a note stands for them
	Referred                  // a whole result stands further up: a note stands for it
)

// Change is what was done to one text of a message that was not sent before.
type Change struct {
	Kind      Kind
	Message   int
	Role      Role
	Documents int   // of the text
	Order     []int // of Ordered: the document that is sent first, second, …, numbered as they came
	Gone      int   // documents, or results, that are not sent
	Echo      bool  // of Ordered: the beginning of the first document is shown once more, behind the last one
}

// Lines counts blocks of lines, and characters of texts that were made shorter.
type Lines struct {
	Replaced int // blocks with a note in their place
	Total    int // blocks that were looked at
	System   int // of Replaced and of those too short: repeats of a system text
	Saved    int // characters of the replaced blocks
	// Before and After are the lengths in characters of the texts that were made shorter, by whatever means.
	Before, After int
}

func (l *Lines) add(m Lines) {
	l.Replaced += m.Replaced
	l.Total += m.Total
	l.System += m.System
	l.Saved += m.Saved
	l.Before += m.Before
	l.After += m.After
}
