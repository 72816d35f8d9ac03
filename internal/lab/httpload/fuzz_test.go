package httpload_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ragpilot/ragpilot/internal/lab/httpload"
)

// FuzzEvents: a stream means the same whatever the pieces in which it arrives and whatever the buffer, every byte of it
// is counted, and its check does not panic.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\ndata: [DONE]\n\n", "data:a\r\n\r\n: ping\nevent: x\ndata: {}\n", "data: cut", "\n\n",
		"data: " + strings.Repeat("x", 3000) + "\n",
		`data: {"id":"a","choices":[{"delta":{"content":"7"},"finish_reason":"stop"}],"usage":{"completion_tokens":1}}` + "\n\ndata: [DONE]\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want, n, err := httpload.ReadEvents(bytes.NewReader(text), 1<<16)
		got, m, err2 := httpload.ReadEvents(iotest.OneByteReader(bytes.NewReader(text)), 16)
		if !slices.Equal(want, got) || n != m || n != int64(len(text)) || !errors.Is(err2, err) {
			t.Errorf("%q %d %v in one piece, %q %d %v in many", want, n, err, got, m, err2)
		}
		lines := bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		if cut := len(lines) > 0 && !bytes.ContainsAny(lines[len(lines)-1:], "\r\n"); cut != errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut off %t: %v", cut, err)
		}
		httpload.CheckStream(bytes.NewReader(text), 7, 1)
	})
}

// FuzzReadBodies: what is accepted is objects, one for each line that is not empty.
func FuzzReadBodies(f *testing.F) {
	for _, seed := range []string{"{}\n{}\n", `{"a":"\n"}`, "\n", "[]", "{}\r\n {\"a\":1} \n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		bodies, err := httpload.ReadBodies(strings.NewReader(text))
		if err != nil {
			return
		}
		lines := 0
		for line := range strings.Lines(text) {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
		if lines != len(bodies) {
			t.Errorf("%d bodies of %d lines", len(bodies), lines)
		}
		for _, b := range bodies {
			if !json.Valid(b) || b[0] != '{' {
				t.Errorf("%q", b)
			}
		}
	})
}
