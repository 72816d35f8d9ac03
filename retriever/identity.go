package retriever

import (
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/retriever/passage"
)

// blocks returns the request's blocks, and what they stand for.
func (s *settings) blocks(found []schema.Document) ([]contextpilot.Block, retrieved) {
	blocks := s.identified(found)
	if s.versioned {
		s.version(blocks, found)
		// Two stores may have cut one document differently, and number their chunks alike.
		blocks = framework.Unambiguous(blocks)
	}
	what := retrieved{docs: found, ids: make([]string, len(found))}
	for i, b := range blocks {
		what.ids[i] = b.ID
	}
	if s.passages != nil {
		blocks, what.of = s.merge(blocks, found)
	} else {
		what.of = single(len(found))
	}
	return blocks, what
}

// identified returns the documents as the core knows them, with an ID for each text. What names a document and not the
// text, by its key or because several texts of the result have it, gets the version of the text.
func (s *settings) identified(docs []schema.Document) []contextpilot.Block {
	out := make([]contextpilot.Block, len(docs))
	texts, shared := make(map[string]string, len(docs)), map[string]bool{}
	for i, d := range docs {
		key, id := keyOf(d.Metadata, s.idKeys)
		out[i] = contextpilot.Block{ID: id, Text: d.PageContent, Score: float64(d.Score)}
		if text, seen := texts[id]; slices.Contains(s.places.Document, key) || seen && text != d.PageContent {
			shared[id] = true
		}
		texts[id] = d.PageContent
	}
	for i, b := range out {
		if b.ID != "" && shared[b.ID] {
			out[i].ID = versioned(b.ID, b.Text)
		}
	}
	return framework.Unambiguous(out) // two versions may be alike
}

// versioned adds the version of a text to an ID: "a.md#3" becomes a.md@version#3.
func versioned(id, text string) string {
	parts, err := passage.ParseID(id)
	if err != nil || parts.Version != "" { // what stands behind an '@' may be part of a name
		parts = passage.ID{Doc: id, Chunk: -1}
	}
	parts.Version = passage.ContentVersion(text)
	return parts.String()
}

// idOf returns the first of the keys' values that can be an ID, or "".
func idOf(metadata map[string]any, keys []string) string {
	_, id := keyOf(metadata, keys)
	return id
}

// keyOf returns the first of the keys whose value can be an ID, and the ID.
func keyOf(metadata map[string]any, keys []string) (key, id string) {
	for _, k := range keys {
		if id := idFrom(metadata[k]); id != "" {
			return k, id
		}
	}
	return "", ""
}

// idFrom formats strings and numbers, named types included. Stores that keep metadata as JSON give whole numbers
// as floats; they must have the same ID as the integers they were.
func idFrom(value any) string {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.String: // json.Number is one
		return v.String()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return strconv.FormatUint(v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return strconv.FormatFloat(f, 'f', -1, v.Type().Bits())
		}
	}
	return ""
}
