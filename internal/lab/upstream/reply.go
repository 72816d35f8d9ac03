package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// Reply is a kind of answer.
type Reply string

// The kinds of answers.
const (
	// Numbered counts up from the request's seed, see [Number]: a token lost, doubled or moved on its way shows.
	Numbered Reply = "numbered"
	// Echo repeats the last message.
	Echo Reply = "echo"
	// Lorem is the same text for all requests.
	Lorem Reply = "lorem"
	// Digest says what the prompt was, see [DigestOf]: equal answers mean equal prompts.
	Digest Reply = "digest"
)

// Replies returns all kinds.
func Replies() []Reply { return []Reply{Numbered, Echo, Lorem, Digest} }

// numbers is how many there are before they begin anew: six digits are one token.
const numbers = 1_000_000

// Number returns token i of the [Numbered] answer to a request with this seed, without the space that separates it
// from the one before.
func Number(seed int64, i int) string {
	n := ((seed%numbers+numbers)%numbers + int64(i)) % numbers
	return strconv.FormatInt(n, 10)
}

// DigestOf returns what a [Digest] answer says of a prompt behind the word "digest": 32 hexadecimal digits that depend on
// roles and texts alone.
func DigestOf(messages []engines.Message) string {
	h := sha256.New()
	for _, m := range messages {
		h.Write([]byte(m.Role))
		h.Write([]byte{0})
		h.Write([]byte(m.Content))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// loremWords are one token each.
var loremWords = strings.Fields("lorem ipsum dolor sit amet sed do magna nulla velit esse cillum fugiat ut enim ad minim veniam quis aute")

// text makes the answer to a question.
func (o *Options) text(q *question) string {
	n := o.Tokens
	if n <= 0 {
		n = q.maxTokens
	}
	n = min(n, MaxTokens)
	switch o.Reply {
	case Echo:
		return firstTokens(q.messages[len(q.messages)-1].Content, n)
	case Digest:
		return "digest " + DigestOf(q.messages)
	}
	if n <= 0 {
		n = DefaultTokens
	}
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		if o.Reply == Lorem {
			b.WriteString(loremWords[i%len(loremWords)])
		} else {
			b.WriteString(Number(q.seed, i))
		}
	}
	return b.String()
}

// firstTokens cuts text behind n tokens; 0 or less: behind MaxTokens.
func firstTokens(text string, n int) string {
	if n <= 0 {
		n = MaxTokens
	}
	count, end := 0, 0
	for at, piece := range tokens.Pieces(text) {
		if count == n {
			return text[:end]
		}
		count, end = count+1, at+len(piece)
	}
	return text
}
