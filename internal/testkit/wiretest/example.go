package wiretest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"
	"testing"
)

// recordings are exchanges with the published Python server, made for this purpose with made-up texts, one example a line.
//
//go:embed testdata/http-examples.jsonl
var recordings []byte

// Example is a recorded sequence of exchanges.
type Example struct {
	Name string
	Mode string // stateless, live, cloud-anthropic, …
	// Fresh examples were recorded on a process that nobody had used; the others after a /reset.
	Fresh bool `json:"fresh_process"`
	Note  string
	Steps []Step
}

// Step is one exchange. Strings may hold placeholders: <id1>, <id2>, … stand for IDs that the server made, equal ones for
// equal IDs in the whole example; <num> is any number, <upstream> the engine's address.
type Step struct {
	Method, Path    string
	Headers         map[string]string
	Body            any     // nil: none
	RawBody         *string `json:"raw_body"` // a body that is no JSON
	Status          int
	Response        any            // {"__text__": …} if it is no JSON
	ResponseHeaders map[string]any `json:"response_headers"` // lower-case names, JSON values parsed
	// UpstreamReply is what the engine answered and UpstreamReceived what it got, nil if it was not asked.
	UpstreamReply    *Reply `json:"upstream_reply"`
	UpstreamReceived any    `json:"upstream_received"`
}

// Reply is an answer of the fake engine: JSON, text, or pieces of a stream.
type Reply struct {
	Status  int
	Headers map[string]string
	JSON    any
	Body    *string
	Chunks  []string
}

// Endpoint is the method and the path without query.
func (s Step) Endpoint() string {
	path, _, _ := strings.Cut(s.Path, "?")
	return s.Method + " " + path
}

// Uses reports whether a step asks for a path with one of the prefixes.
func (e Example) Uses(prefixes ...string) bool {
	for _, s := range e.Steps {
		for _, p := range prefixes {
			if strings.HasPrefix(s.Path, p) {
				return true
			}
		}
	}
	return false
}

// beforeIndex are the examples that are neither fresh nor were recorded on a process that had had an index: their /reset
// left it without one.
var beforeIndex = map[string]bool{"live/metrics-ttft": true}

// hadIndex reports whether the process had an index before the /reset that the example began with.
func (e Example) hadIndex() bool {
	return strings.HasPrefix(e.Mode, "live") && !e.Fresh && !beforeIndex[e.Name]
}

// engineDown reports whether the example was recorded with an engine that refuses connections.
func (e Example) engineDown() bool { return strings.Contains(e.Note, "refuses connections") }

// Examples returns all recorded examples.
func Examples(t testing.TB) []Example {
	t.Helper()
	var out []Example
	Each(t, func(ex Example) { out = append(out, ex) })
	return out
}

// Each calls do for every recorded example, decoded as T.
func Each[T any](t testing.TB, do func(T)) {
	t.Helper()
	EachLine(t, recordings, do)
}

// EachLine calls do for every line of lines, which are JSON.
func EachLine[T any](t testing.TB, lines []byte, do func(T)) {
	t.Helper()
	n := 0
	for line := range bytes.Lines(lines) {
		n++
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("line %d: %v", n, err)
		}
		do(v)
	}
}
