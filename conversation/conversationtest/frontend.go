package conversationtest

import "testing"

// Frontend sends messages on their way, to a model that records what arrives.
type Frontend interface {
	Name() string
	// Send sends all messages of a conversation so far, and returns them as they arrived. It may be called concurrently.
	Send(messages []Message) ([]Message, error)
	// Skips says why a cell of the script, or a variant, means nothing here; "" if it does not.
	Skips(cell string) string
}

// New makes a front end with nothing remembered.
type New func(t testing.TB) Frontend

// Retriever is a front end in whose process documents are retrieved.
type Retriever interface {
	// Retrieve returns the words by which documents stand in the prompt that is sent next.
	Retrieve(docs []Document) string
}

// Restarter is a front end that can forget what it remembers.
type Restarter interface {
	// Restart makes it begin anew, with the orders that it chose if orders is true.
	Restart(orders bool)
}

// Failer is a front end whose model can fail.
type Failer interface {
	// FailNext makes the next request fail before anything was answered.
	FailNext()
}

// Client says who sends a conversation.
type Client struct {
	Tenant, Model string
	Unnamed       bool // the conversation has no name
}

// Multi is a front end with several clients.
type Multi interface {
	// As returns the same front end for another client.
	As(c Client) Frontend
}

// Setting is a way of not changing anything.
type Setting string

// Settings.
const (
	Off     Setting = "switched off"
	HeldOut Setting = "held out"
	Shadow  Setting = "shadow"
)

// Switcher is a front end that can be set to change nothing.
type Switcher interface {
	// With returns a new front end that has the setting.
	With(s Setting) Frontend
}

// Marker is a front end in which clients mark what is to be cached.
type Marker interface {
	// Marked returns the same front end for a client that marks the last message of each request.
	Marked() Frontend
}

// Document is a document with a name.
type Document struct{ Label, Text string }

// block returns the document in our own markup.
func (d Document) block() string { return "<doc " + d.Label + ">\n" + d.Text + "\n</doc>\n" }
