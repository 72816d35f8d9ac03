package retriever

import (
	"math"
	"reflect"
	"strconv"

	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/adapter"
)

// blocks returns the request's blocks, and what they stand for.
func (s *settings) blocks(found []schema.Document) ([]contextpilot.Block, retrieved) {
	blocks := identified(found, s.idKeys)
	if s.versioned {
		s.version(blocks, found)
		// Two stores may have cut one document differently, and number their chunks alike.
		blocks = adapter.Unambiguous(blocks)
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

// identified returns the documents as the core knows them. An ID that stands for more than one text is not used.
func identified(docs []schema.Document, keys []string) []contextpilot.Block {
	out := make([]contextpilot.Block, len(docs))
	for i, d := range docs {
		out[i] = contextpilot.Block{ID: idOf(d.Metadata, keys), Text: d.PageContent, Score: float64(d.Score)}
	}
	return adapter.Unambiguous(out)
}

// idOf returns the first of the keys' values that can be an ID, or "".
func idOf(metadata map[string]any, keys []string) string {
	for _, k := range keys {
		if id := idFrom(metadata[k]); id != "" {
			return id
		}
	}
	return ""
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
