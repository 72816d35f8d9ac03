package trace

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"
)

// System is the text in front of every prompt.
const System = "You are a careful assistant. Read the documents below and answer the question that follows " +
	"them. Use only facts found in the documents, name the ids of the documents you used, and " +
	"say that the answer is not known when the documents do not contain it. Keep the answer " +
	"short and factual.\n"

// fillerWords is the length of the answer of a request that recorded none; each word is one token.
const fillerWords = 40

// Prompts makes the texts of a trace's prompts. A conversation sends [System], then for each turn the text of
// User and, in front of later turns, the answer that came back:
//
//	System  User(turn 1)  Answer(turn 1)  User(turn 2)  ...
//
// The parts are tokenised one by one: no token reaches from one into the next.
type Prompts struct{ Blocks *Blocks }

// User returns what turn q says when it is sent as plan p: the documents, the references, the hint and the
// question. It is an error if p keeps a document that has no text.
func (t Prompts) User(q Request, p Plan) (string, error) {
	var b strings.Builder
	for _, id := range p.Docs {
		text, ok := t.Blocks.Text(id)
		if !ok {
			return "", fmt.Errorf("request %q: unknown block %q", q.ID, id)
		}
		writeDoc(&b, id, text)
	}
	for _, id := range p.Refs {
		b.WriteString("<doc ")
		b.WriteString(id)
		b.WriteString(" see above>\n")
	}
	for _, id := range p.Echo {
		text, ok := p.EchoText[id]
		if !ok {
			if text, ok = t.Blocks.Text(id); !ok {
				return "", fmt.Errorf("request %q: unknown block %q", q.ID, id)
			}
		}
		writeDoc(&b, id, text)
	}
	if p.Hint != "" {
		b.WriteString(p.Hint)
		b.WriteByte('\n')
	}
	b.WriteString(Question(q.Query))
	return b.String(), nil
}

// Doc returns a document as it stands in a prompt.
func Doc(id, text string) string {
	var b strings.Builder
	writeDoc(&b, id, text)
	return b.String()
}

func writeDoc(b *strings.Builder, id, text string) {
	b.Grow(len(id) + len(text) + len("<doc >\n\n</doc>\n"))
	b.WriteString("<doc ")
	b.WriteString(id)
	b.WriteString(">\n")
	b.WriteString(text)
	b.WriteString("\n</doc>\n")
}

// Question returns the end of a turn's text.
func Question(query string) string { return "Question: " + query + "\nAnswer:" }

// Answer returns the text that the engine is taken to answer q with: the recorded answer and a line end, else 40
// words of six hex digits made from the ID. The evaluation makes those words with BLAKE2b, this function with
// XXH3; only their number and that they differ between requests has any effect on a cache.
func Answer(q Request) string {
	if q.Answer != "" {
		return q.Answer + "\n"
	}
	out := make([]byte, 0, fillerWords*7)
	seed := append([]byte(q.ID), '/')
	for i := range fillerWords {
		h := xxh3.Hash(strconv.AppendInt(seed, int64(i), 10))
		if i > 0 {
			out = append(out, ' ')
		}
		out = hex.AppendEncode(out, []byte{byte(h), byte(h >> 8), byte(h >> 16)})
	}
	return string(out)
}
