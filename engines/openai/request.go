package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/ragpilot/ragpilot/engines"
)

// call is a request ready to be sent, any number of times.
type call struct {
	body   []byte
	header http.Header
}

// member is one name and value of a JSON object, kept in the order of sending.
type member struct {
	name  string
	value json.RawMessage
}

type members []member

// set adds a member or replaces the one of that name; an empty value removes it.
func (m *members) set(name string, value json.RawMessage) {
	i := slices.IndexFunc(*m, func(x member) bool { return x.name == name })
	switch {
	case len(value) == 0 && i >= 0:
		*m = slices.Delete(*m, i, i+1)
	case len(value) == 0:
	case i >= 0:
		(*m)[i].value = value
	default:
		*m = append(*m, member{name, value})
	}
}

// setAll sets all members of extra, in the order of their names so that equal requests have equal bodies.
func (m *members) setAll(extra map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		m.set(name, extra[name])
	}
}

// object renders the members.
func (m members) object() []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, x := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(x.name))
		b.WriteByte(':')
		b.Write(x.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// prepare checks a request and renders body and headers.
func (e *Engine) prepare(req engines.Request) (call, error) {
	if len(req.Messages) == 0 {
		return call{}, errors.New("request has no messages")
	}
	for i, m := range req.Messages {
		if m.Role == "" {
			return call{}, fmt.Errorf("message %d of the request has no role", i)
		}
	}
	if req.MaxTokens < 0 {
		return call{}, fmt.Errorf("request's MaxTokens %d is negative", req.MaxTokens)
	}
	for name, value := range req.Extra {
		if len(value) > 0 && !json.Valid(value) {
			return call{}, fmt.Errorf("request's Extra[%q] is not JSON: %s", name, excerpt(string(value), 80))
		}
	}
	body, err := e.body(req)
	if err != nil {
		return call{}, err
	}
	header, err := e.header(req)
	return call{body, header}, err
}

func (e *Engine) body(req engines.Request) ([]byte, error) {
	var m members
	if model := cmp.Or(req.Model, e.config.Model); model != "" {
		m.set("model", quote(model))
	}
	m.set("stream", json.RawMessage("true"))
	m.set("stream_options", json.RawMessage(`{"include_usage":true}`))
	if req.MaxTokens > 0 {
		m.set("max_tokens", fmt.Append(nil, req.MaxTokens))
	}
	if req.Temperature != nil {
		value, err := json.Marshal(*req.Temperature)
		if err != nil {
			return nil, fmt.Errorf("request's Temperature: %w", err) // NaN or infinite
		}
		m.set("temperature", value)
	}
	if req.ID != "" {
		if e.config.IDs&IDRequest != 0 {
			m.set("request_id", quote(req.ID))
		}
		if e.config.IDs&IDRid != 0 {
			m.set("rid", quote(req.ID))
		}
	}
	m.set("messages", encode(req.Messages))
	m.setAll(e.config.Extra)
	m.setAll(req.Extra)
	return m.object(), nil
}

// header returns the headers of a chat request.
func (e *Engine) header(req engines.Request) (http.Header, error) {
	h := e.baseHeader()
	// What the configuration says about this one header still wins over the ID.
	if _, set := h["X-Request-Id"]; !set && req.ID != "" && e.config.IDs&IDHeader != 0 {
		for _, c := range []byte(req.ID) {
			if c < ' ' || c == 0x7f {
				return nil, fmt.Errorf("request's ID %q has control characters and cannot be sent in a header", req.ID)
			}
		}
		h.Set("X-Request-Id", req.ID)
	}
	addHeaders(h, req.Header)
	return h, nil
}

// baseHeader returns the headers that every request to the engine carries.
func (e *Engine) baseHeader() http.Header {
	h := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"text/event-stream, application/json"},
	}
	if e.config.APIKey != "" {
		h.Set("Authorization", "Bearer "+e.config.APIKey)
	}
	addHeaders(h, e.config.Header)
	return h
}

// addHeaders replaces headers of h; an empty list of values removes one.
func addHeaders(h, more http.Header) {
	for name, values := range more {
		h[http.CanonicalHeaderKey(name)] = values
	}
}

// encode renders what cannot fail to render. HTML characters stay as they are: blocks are full of them, and
// six bytes for each < would be paid on every request.
func encode[T string | []engines.Message](v T) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // strings always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func quote(s string) json.RawMessage { return encode(s) }
