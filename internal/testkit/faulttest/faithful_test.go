//go:build linux

package faulttest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// chatBody is a request for a chat; message is one of its messages.
type chatBody struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	Stream   bool      `json:"stream"`
	Tokens   int       `json:"max_tokens"`
	Seed     int       `json:"seed"`
}

type message struct {
	Role    string     `json:"role"`
	Content string     `json:"content"`
	CallID  string     `json:"tool_call_id,omitempty"`
	Calls   []toolCall `json:"tool_calls,omitempty"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// The notes that may stand in place of a text.
var (
	sameResult = regexp.MustCompile(
		`\[Duplicate content — identical to a previous tool result \((.*?)\)\. Refer to the earlier result above\.\]`,
	)
	sameDocs = regexp.MustCompile(
		`\[All (\d+) documents identical to a previous tool result \(\d+ chars\)\. Refer to the earlier result above\.\]`,
	)
	sameBlock  = regexp.MustCompile(`\[\.\.\. "(.*?)" — identical to earlier (.*?) result, see above \.\.\.\]`)
	namedDocs  = regexp.MustCompile(`\[Documents "(.*?)" — identical to earlier (.*?) result, see above\.\]`)
	echoed     = regexp.MustCompile(`(?s)<doc \S+ again>\n(.*?)\n</doc>`) // of the first document, behind the last one
	documentIn = regexp.MustCompile(`(?s)<document>\s*(.*?)\s*</document>`)
)

// notes counts the notes in what was forwarded.
func notes(body []byte) (n int) {
	for _, re := range []*regexp.Regexp{sameResult, sameDocs, sameBlock} {
		n += len(re.FindAll(body, -1))
	}
	return n + bytes.Count(body, []byte(`[... \"`)) + bytes.Count(body, []byte(`[Documents \"`))
}

// faithful checks a forwarded body against what the client sent: it is the same, or each line that was taken out stands
// further up in it, each document in one piece, and each note and each echo is true. It is slow and knows nothing of how the
// sidecar decides.
func faithful(sent, got []byte) error {
	if bytes.Equal(sent, got) {
		return nil
	}
	var s, g chatBody
	if err := json.Unmarshal(sent, &s); err != nil {
		return fmt.Errorf("changed, though the sent one is no chat: %.300s", got)
	}
	if err := json.Unmarshal(got, &g); err != nil {
		return fmt.Errorf("%w: %.300s", err, got)
	}
	if len(s.Messages) != len(g.Messages) || s.Model != g.Model || s.Stream != g.Stream || s.Tokens != g.Tokens || s.Seed != g.Seed {
		return fmt.Errorf("other members changed:\n%.300s\n%.300s", sent, got)
	}
	c := &comparison{sent: s.Messages, got: g.Messages, above: map[string]bool{}, tools: map[string]string{}}
	for i := range s.Messages {
		if err := c.message(i); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return nil
}

// comparison goes through both bodies.
type comparison struct {
	sent, got []message
	above     map[string]bool   // lines that were forwarded so far
	tools     map[string]string // names by calls' IDs
}

func (c *comparison) message(i int) error {
	s, g := c.sent[i], c.got[i]
	if s.Role != g.Role || s.CallID != g.CallID || fmt.Sprint(s.Calls) != fmt.Sprint(g.Calls) {
		return fmt.Errorf("more than the content changed: %v", g)
	}
	here := linesOf(g.Content)
	for line := range linesOf(s.Content) {
		if !here[line] && !c.above[line] {
			return fmt.Errorf("the line %q is gone:\n%s", line, g.Content)
		}
	}
	if s.Content != g.Content {
		if err := c.changed(i); err != nil {
			return err
		}
	}
	for line := range here {
		c.above[line] = true
	}
	for _, call := range s.Calls {
		c.tools[call.ID] = call.Function.Name
	}
	return nil
}

// changed checks what is in place of a text's parts.
func (c *comparison) changed(i int) error {
	s, g := c.sent[i].Content, c.got[i].Content
	for _, d := range documentIn.FindAllStringSubmatch(s, -1) {
		if !strings.Contains(g, d[1]) && !c.aboveInOnePiece(i, d[1]) && !sameBlock.MatchString(g) {
			return fmt.Errorf("the document %.60q is nowhere in one piece", d[1])
		}
	}
	rest := g
	for _, note := range sameResult.FindAllStringSubmatch(g, -1) {
		rest = strings.ReplaceAll(rest, note[0], "")
		if !c.resultIs(i, note[1], s) {
			return fmt.Errorf("not true: %s", note[0])
		}
	}
	for _, note := range sameDocs.FindAllStringSubmatch(g, -1) {
		rest = strings.ReplaceAll(rest, note[0], "")
		docs := documentIn.FindAllStringSubmatch(s, -1)
		if n, _ := strconv.Atoi(note[1]); n != len(docs) || n == 0 {
			return fmt.Errorf("there are %d documents: %s", len(docs), note[0])
		}
	}
	for _, note := range namedDocs.FindAllStringSubmatch(g, -1) {
		rest = strings.ReplaceAll(rest, note[0], "")
		for name := range strings.SplitSeq(note[1], `", "`) {
			if !c.lineIn(i, note[2], name) {
				return fmt.Errorf("%q is not true: %s", name, note[0])
			}
		}
	}
	for _, note := range sameBlock.FindAllStringSubmatch(g, -1) {
		rest = strings.ReplaceAll(rest, note[0], "")
		for words := range strings.SplitSeq(note[1], `" to "`) { // of the first line, and of the last one of several blocks
			if !c.lineIn(i, note[2], words) {
				return fmt.Errorf("not true: %s", note[0])
			}
		}
	}
	for n, echo := range echoed.FindAllStringSubmatch(g, -1) {
		rest = strings.Replace(rest, echo[0], "", 1)
		if n > 0 || !strings.Contains(s, echo[1]) {
			return fmt.Errorf("not true: %s", echo[0])
		}
	}
	was := linesOf(s)
	for line := range linesOf(rest) {
		if !was[line] {
			return fmt.Errorf("the line %q was added", line)
		}
	}
	return nil
}

func (c *comparison) aboveInOnePiece(i int, text string) bool {
	for _, m := range c.got[:i] {
		if strings.Contains(m.Content, text) {
			return true
		}
	}
	return false
}

// resultIs reports whether an earlier message is the result of a call, and was forwarded with this text.
func (c *comparison) resultIs(i int, id, text string) bool {
	for j, m := range c.got[:i] {
		if m.CallID == id && c.sent[j].Content == text && !sameResult.MatchString(m.Content) {
			return true
		}
	}
	return false
}

// lineIn reports whether an earlier message with a label has a line that begins so.
func (c *comparison) lineIn(i int, label, begin string) bool {
	for _, m := range c.got[:i] {
		is := map[string]string{
			"system": "system prompt", "user": "user message", "assistant": "assistant message",
			"tool": c.tools[m.CallID],
		}[m.Role]
		for line := range strings.Lines(m.Content) {
			if is == label && strings.HasPrefix(bare(line), bare(begin)) {
				return true
			}
		}
	}
	return false
}

// linesOf returns the lines of a text without white space and documents' tags around them, and without the numbers of a
// listing.
func linesOf(text string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(text) {
		if line = bare(line); line != "" {
			out[line] = true
		}
	}
	return out
}

func bare(line string) string {
	number, rest, ok := strings.Cut(line, "|")
	if _, err := strconv.Atoi(strings.TrimSpace(number)); ok && err == nil {
		line = rest
	}
	return strings.TrimSpace(tags.Replace(line))
}

var tags = strings.NewReplacer("<documents>", "", "</documents>", "", "<document>", "", "</document>", "")

// TestFaithfulBites: the check refuses what it must.
func TestFaithfulBites(t *testing.T) {
	long := strings.Repeat("a line that stands there\n", 3)
	call := func(id string) message {
		return message{Role: "assistant", Calls: []toolCall{{ID: id, Type: "function", Function: function{Name: "read", Arguments: "{}"}}}}
	}
	body := func(second string) []byte {
		text, err := json.Marshal(chatBody{Messages: []message{
			call("1"), {Role: "tool", CallID: "1", Content: long}, call("2"), {Role: "tool", CallID: "2", Content: second},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	note := func(id string) string {
		return "[Duplicate content — identical to a previous tool result (" + id + "). Refer to the earlier result above.]"
	}
	block := func(first string) string {
		return `[... "` + first + `" — identical to earlier read result, see above ...]`
	}
	for name, c := range map[string]struct {
		sent, got string
		ok        bool
	}{
		"same":                 {"x", "x", true},
		"true note":            {long, note("1"), true},
		"note of nothing":      {long, note("3"), false},
		"note of itself":       {long, note("2"), false},
		"note of another text": {long + "more\n", note("1"), false},
		"line lost":            {"kept\nlost\n", "kept\n", false},
		"line added":           {"kept\n", "kept\nadded\n", false},
		"true block":           {long + "own\n", block("a line that") + "\nown\n", true},
		"block of nothing":     {long + "own\n", block("no such line") + "\nown\n", false},
		"true blocks":          {long + "own\n", block(`a line that" to "a line that`) + "\nown\n", true},
		"blocks to nothing":    {long + "own\n", block(`a line that" to "no such line`) + "\nown\n", false},
		"document lost":        {"<document>\nd1\n</document>\n<document>\nd2\n</document>\n", "<document>\nd1\n</document>\n", false},
		"true echo":            {"kept\nsome. more.\n", "kept\nsome. more.\n<doc kept again>\nmore.\n</doc>\n", true},
		"false echo":           {"kept\nsome. more.\n", "kept\nsome. more.\n<doc kept again>\nmuch more.\n</doc>\n", false},
		"second echo":          {"a\n", "a\n<doc a again>\na\n</doc>\n<doc a again>\na\n</doc>\n", false},
		"line in echo":         {"a\n", "a\n<doc a again>\na\n</doc>\nadded\n", false},
		"document moved": {
			"<document>\nd1\n</document>\n<document>\nd2\n</document>\n",
			"<document>\nd2\n</document>\n<document>\nd1\n</document>\n", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := faithful(body(c.sent), body(c.got)); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}
