package httpload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/ragpilot/ragpilot/internal/lab/jsonlines"
	"github.com/ragpilot/ragpilot/internal/lab/workload"
)

// Bodies are what is sent. Body returns that of request i, which its caller owns; it is called by several goroutines at
// a time.
type Bodies interface {
	Body(i int) []byte
}

// Place says where documents stand in a request.
type Place string

// The places.
const (
	InSystem Place = "system" // in the system message
	InTool   Place = "tool"   // in the answer of a tool, behind the user's message
)

// BodyOptions describe made-up chat requests.
type BodyOptions struct {
	Model string // empty: none is named
	// Documents is the number of different documents; 0: requests have none.
	Documents int
	// K is the number of documents in a request.
	K int
	// BlockTokens is the mean length of a document, in tokens of internal/prompt/tokens.
	BlockTokens int
	Place       Place // empty: InSystem
	Seed        uint64
	Stream      bool
	// MaxTokens is the length of answers to ask for; 0: not said.
	MaxTokens int
}

// shapes is how many different selections of documents there are; they begin anew, with other questions.
const shapes = 1000

const (
	instructions = "You are a careful assistant. Answer from the documents and say so if they do not hold the answer."
	toolCall     = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"search",` +
		`"arguments":"{}"}}]}`
)

// Made are made-up requests: what package internal/lab/workload draws, so that requests share documents as retrieval
// does, each with a question of its own. Request i has the seed i.
type Made struct {
	head, behind string
	place        Place
	selections   []selection
}

// selection is what one request in [shapes] has. All texts are as they stand inside a JSON string.
type selection struct {
	documents []string
	question  string // behind its number
}

// Generate makes requests, the same for the same options. Errors call options by their names on the command line.
func Generate(o BodyOptions) (*Made, error) {
	switch {
	case o.Documents < 0:
		return nil, fmt.Errorf("documents %d: must not be negative", o.Documents)
	case o.Documents > 0 && (o.K < 1 || o.K > o.Documents):
		return nil, fmt.Errorf("k %d: want at least 1 and at most all %d documents", o.K, o.Documents)
	case o.Documents > 0 && o.BlockTokens < 1:
		return nil, fmt.Errorf("block-tokens %d: want at least 1", o.BlockTokens)
	case o.Place != "" && o.Place != InSystem && o.Place != InTool:
		return nil, fmt.Errorf("place %q: want %s or %s", o.Place, InSystem, InTool)
	}
	m := &Made{place: o.Place, head: "{" + member("model", o.Model) + `"messages":[`, behind: `],"stream":false`}
	if o.Stream {
		m.behind = `],"stream":true,"stream_options":{"include_usage":true}`
	}
	if o.MaxTokens > 0 {
		m.behind += `,"max_tokens":` + strconv.Itoa(o.MaxTokens)
	}
	if o.Documents == 0 {
		m.selections = []selection{{question: ": what is it?"}}
		return m, nil
	}
	requests, blocks, err := workload.Generate(workload.Options{
		Seed: o.Seed, Contexts: shapes, K: o.K, Pool: o.Documents, Topics: max(1, o.Documents/(2*o.K)), Zipf: 1, BlockTokens: o.BlockTokens,
	})
	if err != nil {
		return nil, err
	}
	escaped := map[string]string{}
	for _, r := range requests {
		x := selection{question: inside(": " + r.Query)}
		for _, id := range r.Docs {
			if _, ok := escaped[id]; !ok {
				text, _ := blocks.Text(id)
				escaped[id] = inside("<document>\n" + text + "\n</document>\n")
			}
			x.documents = append(x.documents, escaped[id])
		}
		m.selections = append(m.selections, x)
	}
	return m, nil
}

// Body renders request i.
func (m *Made) Body(i int) []byte {
	x := &m.selections[i%len(m.selections)]
	size := 1024
	for _, d := range x.documents {
		size += len(d)
	}
	b := append(make([]byte, 0, size), m.head...)
	b = append(b, `{"role":"system","content":"`+instructions...)
	if m.place != InTool {
		b = x.appendDocuments(b, `\n`)
	}
	b = strconv.AppendInt(append(b, `"},{"role":"user","content":"Question `...), int64(i), 10)
	b = append(append(b, x.question...), `"}`...)
	if m.place == InTool && len(x.documents) > 0 {
		b = append(b, ","+toolCall+`,{"role":"tool","tool_call_id":"call_1","content":"`...)
		b = append(x.appendDocuments(b, ""), `"}`...)
	}
	b = append(append(b, m.behind...), `,"seed":`...)
	return append(strconv.AppendInt(b, int64(i), 10), '}')
}

// appendDocuments appends the documents, if there are any, behind a prefix.
func (x *selection) appendDocuments(b []byte, prefix string) []byte {
	if len(x.documents) == 0 {
		return b
	}
	b = append(append(b, prefix...), `<documents>\n`...)
	for _, d := range x.documents {
		b = append(b, d...)
	}
	return append(b, "</documents>"...)
}

// inside renders text as it stands between the quotes of a JSON string.
func inside(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // as clients in other languages send it
	_ = e.Encode(text)
	return string(b.Bytes()[1 : b.Len()-2])
}

func member(name, value string) string {
	if value == "" {
		return ""
	}
	return `"` + name + `":"` + inside(value) + `",`
}

// Recorded are bodies sent as they are, one after the other and then again.
type Recorded [][]byte

// Body returns body i.
func (r Recorded) Body(i int) []byte { return r[i%len(r)] }

// maxLine bounds one recorded body in bytes.
const maxLine = 64 << 20

// ReadBodies reads a JSON object from each line; empty lines are skipped. Errors name the line.
func ReadBodies(r io.Reader) (Recorded, error) {
	var out Recorded
	err := jsonlines.Read(r, maxLine, func(_ int, line []byte) error {
		if line[0] != '{' || !json.Valid(line) {
			return errors.New("not a JSON object")
		}
		out = append(out, bytes.Clone(line))
		return nil
	})
	if err == nil && len(out) == 0 {
		err = errors.New("no request in it")
	}
	return out, err
}
