package replay

import (
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// Talks makes the messages of a trace's requests, conversation by conversation. Not safe for concurrent use.
type Talks struct {
	blocks  *trace.Blocks
	history bool
	head    string
	said    map[string][]engines.Message // session → messages so far
	left    map[string]int               // session → turns to come
}

// NewTalks returns the conversations of a trace, all of whose requests are going to be sent. With a salt, it is the
// first line of every prompt.
func NewTalks(trc []trace.Request, blocks *trace.Blocks, history bool, salt string) *Talks {
	t := &Talks{blocks: blocks, history: history, head: trace.System, said: map[string][]engines.Message{}, left: map[string]int{}}
	if salt != "" {
		t.head = salt + "\n" + t.head
	}
	for _, q := range trc {
		t.left[q.Session]++
	}
	return t
}

// Ask returns the messages that send a request as planned: the conversation so far and the turn. The caller must
// not change them.
func (t *Talks) Ask(q trace.Request, p trace.Plan) ([]engines.Message, error) {
	text, err := trace.Prompts{Blocks: t.blocks}.User(q, p)
	if err != nil {
		return nil, err
	}
	talk := t.said[q.Session]
	if talk == nil {
		talk = []engines.Message{{Role: engines.System, Content: t.head}}
	}
	talk = append(talk, engines.Message{Role: engines.User, Content: text})
	if t.left[q.Session]--; t.left[q.Session] == 0 || !t.history {
		delete(t.said, q.Session)
	} else {
		// Later turns resend the recorded answers, so that all policies see the same conversations.
		t.said[q.Session] = append(talk, engines.Message{Role: engines.Assistant, Content: trace.Answer(q)})
	}
	return talk, nil
}
