package stabilise

import (
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/internal/prompt/notes"
)

// Message is one message of a conversation, for programs that have no bodies.
type Message struct {
	Role  conversation.Role
	Sum   conversation.Sum // stands for all of the message that the model reads
	Texts []string
}

// Moved is what is sent of a conversation in another form. A message is named by its index in what came.
type Moved struct {
	// Texts are those of messages with a text that is another one now. A text of which nothing stays is "".
	Texts map[int][]string
	// Behind is what is sent behind messages: as a system message if System is true, else as a text that is to stand behind the user's own,
	// or in a user message behind a tool's result.
	Behind map[int]string
	System bool
	// Begins stands for how the conversation begins, see [Stabiliser.Order].
	Begins conversation.Sum
}

// Move applies the rules that move texts to the messages of a conversation. Only system messages at its beginning lose texts. user says
// that the model takes no system message behind others, whatever the configuration says.
func (s *Stabiliser) Move(c Conversation, messages []Message, user bool) Moved {
	out := Moved{Texts: map[int][]string{}, Behind: map[int]string{}, System: s.cfg.Place == PlaceSystem && !user}
	first := 0
	for first < len(messages) && messages[first].Role == conversation.System {
		first++
	}
	end := len(messages) - 1
	for end >= first && messages[end].Role == conversation.Assistant {
		end--
	}
	f := &finder{s: s, form: c.Form, slots: map[string]int{}}
	heads := make([]string, 0, first)
	for i := range messages[:first] {
		heads = append(heads, s.head(&out, f, i, messages[i].Texts, end >= first)...)
	}
	head := xxh3.HashString128(strings.Join(heads, "\x00"))
	out.Begins = head
	for _, m := range messages[first:] {
		if out.Begins = nextSum(out.Begins, m.Sum); m.Role == conversation.User {
			break
		}
	}
	if !s.cfg.moves() || end < first {
		return out
	}
	done := Stats{Volatile: f.lines, Memories: f.memories, Kept: f.kept}
	key, named := identity(&c, "")
	if !named {
		key = nextSum(key, head)
	}
	isTool := func(i int) bool { return i < len(messages) && messages[i].Role == conversation.Tool }
	q := &turn{owner: c.Name, named: named, pieces: f.out, closed: func(i int) bool { return isTool(first+i) && isTool(first+i+1) }}
	for i := first; i <= end; i++ {
		key = nextSum(key, messages[i].Sum)
		q.chains = append(q.chains, key)
	}
	last := s.table(c.Tenant).sent(q)
	for l := last; l != nil; l = l.before {
		if l != last {
			done.Again += int64(len(l.pieces))
		}
		i := first + l.message
		if len(l.pieces) > 0 {
			out.Behind[i] = joined(l.pieces)
			if !out.System {
				out.Behind[i] = notes.Moved(out.Behind[i])
			}
		}
	}
	if !out.System {
		done.Fenced = fenced(&out, messages, first)
	}
	s.count(&done)
	return out
}

// joined returns the texts of pieces.
func joined(pieces []piece) string {
	texts := make([]string, len(pieces))
	for j, p := range pieces {
		texts[j] = p.text
	}
	return strings.Join(texts, "\n")
}

// head takes pieces out of the texts of a system message, and returns those as they are sent.
func (s *Stabiliser) head(out *Moved, f *finder, i int, texts []string, move bool) []string {
	if !move || !s.cfg.moves() {
		return texts
	}
	sent := make([]string, len(texts))
	for j, came := range texts {
		sent[j] = f.take(came)
		if !out.System && notes.FenceMoved(sent[j]) != sent[j] {
			sent[j] = notes.FenceMovedWhere(sent[j], newGuard(sent[j], f.form).behind)
		}
		if sent[j] != came && strings.TrimSpace(sent[j]) == "" {
			sent[j] = ""
		}
	}
	if !slices.Equal(sent, texts) {
		out.Texts[i] = sent
	}
	return sent
}

// fenced fences the texts of all but the system, and returns how many messages have some.
func fenced(out *Moved, messages []Message, first int) (n int64) {
	for i, m := range messages[first:] {
		if m.Role == conversation.System {
			continue
		}
		if texts := notes.FenceMovedParts(m.Texts); !slices.Equal(texts, m.Texts) {
			out.Texts[first+i] = texts
			n++
		}
	}
	return n
}

// Order returns the order in which the tools of a conversation are sent: the indices of names. Those that it had before stay as they stood,
// new ones come behind them by name. A list that has a name twice stays as it is, and so does every one if the rule is off. begins is
// [Moved.Begins]; of a conversation with a name it does not matter.
func (s *Stabiliser) Order(c Conversation, begins conversation.Sum, names []string) []int {
	out := make([]int, len(names))
	for i := range out {
		out[i] = i
	}
	if !s.cfg.Tools || len(names) < 1 || len(names) > maxParts {
		return out
	}
	var done Stats
	defer func() { s.count(&done) }()
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			done.Kept++
			return out
		}
		seen[name] = true
	}
	key, named := identity(&c, "")
	if !named {
		key = nextSum(key, begins)
	}
	out = s.table(c.Tenant).arrange(key, c.Name, names)
	if !slices.IsSorted(out) {
		done.Tools++
	}
	return out
}
