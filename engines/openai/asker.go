package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// dialect is one way in which engines offer their tokenizer.
type dialect struct {
	url string
	// body renders the question.
	body func(model, text string) []byte
	// llama: the answer is a list of tokens, instead of a count.
	llama bool
}

// asker asks an engine's tokenizer and remembers which dialect it speaks.
type asker struct {
	engine   *Engine
	dialects []dialect
	known    atomic.Int32 // index of the dialect plus 1; 0: not known
}

// errOther: the server is there, but does not speak this dialect.
var errOther = errors.New("no answer in this form")

func newAsker(e *Engine) *asker {
	outside := root(e.base)
	return &asker{engine: e, dialects: []dialect{
		{url: outside + "/tokenize", body: promptQuestion}, // vLLM, SGLang
		// llama.cpp answers the question above with an empty list instead of an error.
		{url: outside + "/tokenize", body: contentQuestion, llama: true},
		{url: e.base + "/tokenize", body: promptQuestion}, // SGLang behind a proxy that passes /v1 only
	}}
}

// promptQuestion leaves special tokens out: they stand around a prompt, not around each of its blocks.
func promptQuestion(model, text string) []byte {
	var m members
	if model != "" {
		m.set("model", quote(model))
	}
	m.set("prompt", quote(text))
	m.set("add_special_tokens", json.RawMessage("false"))
	return m.object()
}

func contentQuestion(_, text string) []byte {
	var m members
	m.set("content", quote(text))
	m.set("add_special", json.RawMessage("false"))
	return m.object()
}

// count asks for the number of tokens of text, trying all dialects if none is known yet.
func (a *asker) count(ctx context.Context, text string) (int, error) {
	if i := a.known.Load(); i > 0 {
		return a.try(ctx, a.dialects[i-1], text)
	}
	for i, d := range a.dialects {
		n, err := a.try(ctx, d, text)
		if err == nil {
			a.known.Store(int32(i) + 1)
			return n, nil
		}
		if !errors.Is(err, errOther) {
			return 0, err
		}
	}
	return 0, errOther
}

// forget makes the next count find the dialect again.
func (a *asker) forget() { a.known.Store(0) }

func (a *asker) try(ctx context.Context, d dialect, text string) (int, error) {
	body := d.body(a.engine.config.Model, text)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header = a.engine.baseHeader()
	response, err := a.engine.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	// A token is at least a byte, and its number in the list takes up to eight.
	answer, err := io.ReadAll(io.LimitReader(response.Body, int64(8*len(text))+maxErrorBody))
	switch code := response.StatusCode; {
	case err != nil:
		return 0, err
	case code == http.StatusTooManyRequests || code >= 500 && code != http.StatusNotImplemented:
		return 0, fmt.Errorf("status %d", code)
	case code != http.StatusOK:
		return 0, errOther
	}
	return d.read(answer, len(text))
}

// read takes the count out of an answer for a text of so many bytes.
func (d dialect) read(answer []byte, length int) (int, error) {
	var a struct {
		Count  *int              `json:"count"`
		Tokens []json.RawMessage `json:"tokens"` // numbers, or objects if a server adds the pieces
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return 0, errOther
	}
	n := len(a.Tokens)
	if !d.llama {
		if a.Count == nil {
			return 0, errOther
		}
		n = *a.Count
	}
	// No vocabulary needs more than a token for each byte and a few around them; none at all is an answer to
	// another question.
	if n <= 0 || n > length+16 {
		return 0, errOther
	}
	return n, nil
}
