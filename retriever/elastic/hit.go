package elastic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// answer is what is read of a search's answer.
type answer struct {
	TimedOut bool `json:"timed_out"`
	Shards   struct {
		Total, Failed int
	} `json:"_shards"`
	Hits struct {
		Hits []rawHit `json:"hits"`
	} `json:"hits"`
}

type rawHit struct {
	ID        string                     `json:"_id"`
	Score     float32                    `json:"_score"`
	Source    map[string]json.RawMessage `json:"_source"`
	Highlight map[string][]string        `json:"highlight"`
}

// hit reads a document.
func (x *Index) hit(raw *rawHit) (store.Hit, error) {
	l := x.opts.Layout
	h := store.Hit{ID: raw.ID, Score: float64(raw.Score)}
	if err := take(raw.Source, l.ID, &h.ID); err != nil {
		return store.Hit{}, fmt.Errorf("%w: %q: field %q: %w", store.ErrBadDocument, raw.ID, l.ID, err)
	}
	if err := take(raw.Source, l.Text, &h.Text); err != nil {
		return store.Hit{}, fmt.Errorf("%w: %q: field %q: %w", store.ErrBadDocument, raw.ID, l.Text, err)
	}
	if h.ID == "" { // the field is there, and empty
		h.ID = raw.ID
	}
	if h.Text == "" && get(raw.Source, l.Text) == nil {
		return store.Hit{}, fmt.Errorf("%w: %q has no field %q", store.ErrBadDocument, raw.ID, l.Text)
	}
	if take(raw.Source, l.Version, &h.Version) != nil || h.Version == "" { // what others store there may be a number
		h.Version = store.Version(h.Text)
	}
	var err error
	if h.Metadata, err = x.metadata(raw.Source); err != nil {
		return store.Hit{}, fmt.Errorf("%w: %q: metadata: %w", store.ErrBadDocument, raw.ID, err)
	}
	if passages := raw.Highlight[l.Text]; len(passages) > 0 {
		if h.Metadata == nil {
			h.Metadata = map[string]any{}
		}
		list := make([]any, len(passages))
		for i, p := range passages {
			list[i] = p
		}
		h.Metadata[KeyPassages] = list
	}
	return h, nil
}

// metadata reads the object that holds it, or all fields that have no other meaning.
func (x *Index) metadata(source map[string]json.RawMessage) (map[string]any, error) {
	l := x.opts.Layout
	var m map[string]any
	if l.Metadata != TopLevel {
		return m, take(source, l.Metadata, &m)
	}
	known := map[string]bool{l.ID: true, l.Text: true, l.Version: true, l.Vector: true, l.Tenant: true}
	if !l.Mapped {
		known[facetsField], known[numbersField] = true, true
	}
	m = make(map[string]any, len(source))
	for key, raw := range source {
		if known[key] {
			continue
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, err
		}
		m[key] = v
	}
	return m, nil
}

// take reads a field, if it is there.
func take(source map[string]json.RawMessage, field string, out any) error {
	raw := get(source, field)
	if raw == nil {
		return nil
	}
	return json.Unmarshal(raw, out)
}

// get follows the dots of a field's name. Null stands for a field that is not there.
func get(source map[string]json.RawMessage, field string) json.RawMessage {
	if raw, ok := source[field]; ok {
		if string(raw) == "null" { // the server has no such thing as a field that is null
			return nil
		}
		return raw
	}
	head, rest, dotted := strings.Cut(field, ".")
	var inner map[string]json.RawMessage
	if !dotted || json.Unmarshal(source[head], &inner) != nil {
		return nil
	}
	return get(inner, rest)
}
