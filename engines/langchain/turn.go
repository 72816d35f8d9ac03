package langchain

import (
	"slices"
	"strconv"

	"github.com/tmc/langchaingo/llms"
	"github.com/zeebo/xxh3"
)

// turn is one call's messages, read once.
type turn struct {
	session  string
	messages []llms.MessageContent // as they are sent; the caller's slice until something is replaced
	copied   bool
	prior    []string // texts in front of the last human message as they are sent, without system messages
	last     int      // index of the last human message; −1: none
	texts    []place  // texts of that message, as the caller gave them
}

// place is a text of the last human message.
type place struct {
	part int
	key  rewriteKey
	text string // the caller's
	sent string // what goes out in its place, often the same
}

// read walks through the messages and repeats the rewriting of earlier calls.
func (m *model) read(session string, messages []llms.MessageContent) *turn {
	t := &turn{session: session, messages: messages, last: -1}
	for i, msg := range messages {
		if msg.Role == llms.ChatMessageTypeHuman {
			t.last = i
		}
	}
	h := xxh3.New()
	hash := func(s string) { _, _ = h.WriteString(strconv.Itoa(len(s)) + ":" + s) } // never fails (hash.Hash)
	hash(session)
	for i, msg := range messages {
		if msg.Role == llms.ChatMessageTypeSystem {
			continue
		}
		hash(string(msg.Role))
		for j, part := range msg.Parts {
			text, ok := textOf(part)
			if !ok {
				continue
			}
			hash(text)
			key := rewriteKey(h.Sum128())
			sent := text
			if msg.Role == llms.ChatMessageTypeHuman {
				if again, ok := m.sent.get(key); ok {
					sent = again
					t.replace(i, j, sent)
				}
			}
			switch {
			case i < t.last:
				t.prior = append(t.prior, sent)
			case i == t.last:
				t.texts = append(t.texts, place{j, key, text, sent})
			}
		}
	}
	return t
}

// replace changes the text of a part in a copy of the messages.
func (t *turn) replace(message, part int, text string) {
	if !t.copied {
		t.messages, t.copied = slices.Clone(t.messages), true
	}
	parts := slices.Clone(t.messages[message].Parts)
	parts[part] = withText(parts[part], text)
	t.messages[message].Parts = parts
}

// textOf returns the text of a text part, also of one that is marked for a provider's cache.
func textOf(part llms.ContentPart) (string, bool) {
	switch p := part.(type) {
	case llms.TextContent:
		return p.Text, true
	case *llms.TextContent:
		if p != nil {
			return p.Text, true
		}
	case llms.CachedContent:
		return textOf(p.ContentPart)
	}
	return "", false
}

// withText returns a copy of a text part with another text.
func withText(part llms.ContentPart, text string) llms.ContentPart {
	if c, ok := part.(llms.CachedContent); ok {
		c.ContentPart = withText(c.ContentPart, text)
		return c
	}
	return llms.TextContent{Text: text}
}
