package elastic

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// vectorType is the server's type of fields that hold vectors.
const vectorType = "dense_vector"

// fieldAnswer is what is read of an answer about a field. Each index has it as one of the types.
type fieldAnswer struct {
	Indices []string                        `json:"indices"`
	Fields  map[string]map[string]fieldType `json:"fields"`
}

type fieldType struct {
	Searchable bool     `json:"searchable"`
	Indices    []string `json:"indices"` // empty: all
}

// checkVectors asks whether all indexes behind Options.Index can be searched by vectors. In an index without the field the
// server finds nothing, without an error, and does not look for vectors that are written there. The error wraps bad. It
// asks for what a program with the right to search may ask.
func (x *Index) checkVectors(ctx context.Context, bad error) error {
	field := x.opts.Layout.Vector
	var a fieldAnswer
	err := x.read(ctx, call{
		name: "field_caps", method: http.MethodPost, path: x.opts.Index + "/_field_caps",
		query: url.Values{"include_unmapped": {"true"}}, body: fmt.Appendf(nil, `{"fields":[%q]}`, field),
	}, store.ErrBadQuery, &a)
	if err != nil {
		return fmt.Errorf("ask for the type of field %q: %w", field, err)
	}
	types := a.Fields[field]
	if len(types) == 0 {
		types = map[string]fieldType{"unmapped": {}}
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		t := types[name]
		if len(t.Indices) == 0 {
			t.Indices = a.Indices
		}
		var is string
		switch {
		case name == vectorType && t.Searchable:
			continue
		case name == vectorType:
			is = "is not indexed"
		case name == "unmapped":
			is = "does not exist"
		default:
			is = "is a " + name
		}
		return fmt.Errorf("%w: Options.Embedder is set, and in the index %q the field %q (Options.Layout.Vector) %s, want an indexed %s: "+
			"name the field that holds vectors, make the index with Create or Rebuild, or leave Options.Embedder out",
			bad, t.Indices, field, is, vectorType)
	}
	x.vectors.Store(true)
	return nil
}
