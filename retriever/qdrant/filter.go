package qdrant

import (
	"fmt"
	"math"
	"strings"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// restriction joins what every search must obey: tenant, Options.Filter and the query's filter. Nil: nothing.
func (x *Index) restriction(q store.Query) (*api.Filter, error) {
	var must []*api.Condition
	if x.opts.Layout.tenants() {
		must = append(must, api.NewMatchKeyword(x.opts.Layout.Tenant, q.Tenant))
	}
	if x.filter != nil {
		must = append(must, x.filter)
	}
	own, err := x.condition(q.Filter)
	if err != nil {
		return nil, fmt.Errorf("Query.Filter: %w", err)
	}
	if own != nil {
		must = append(must, own)
	}
	if len(must) == 0 {
		return nil, nil
	}
	return &api.Filter{Must: must}, nil
}

// condition translates a filter. Nil: it fits every document.
func (x *Index) condition(f store.Filter) (*api.Condition, error) {
	switch f.Op {
	case store.OpTrue:
		return nil, nil
	case store.OpIn:
		return x.in(f)
	case store.OpRange:
		return x.inRange(f)
	case store.OpNot:
		inner, err := x.condition(f.Of[0])
		if err != nil {
			return nil, err
		}
		if inner == nil {
			return api.NewHasID(), nil // no document
		}
		return api.NewFilterAsCondition(&api.Filter{MustNot: []*api.Condition{inner}}), nil
	case store.OpAll, store.OpAny:
		return x.group(f)
	}
	return nil, fmt.Errorf("%w: Filter.Op = %d is unknown", store.ErrBadQuery, f.Op)
}

func (x *Index) group(f store.Filter) (*api.Condition, error) {
	var conditions []*api.Condition
	for _, of := range f.Of {
		c, err := x.condition(of)
		if err != nil {
			return nil, err
		}
		if c == nil && f.Op == store.OpAny {
			return nil, nil
		}
		if c != nil {
			conditions = append(conditions, c)
		}
	}
	switch {
	case len(conditions) == 0:
		return nil, nil
	case f.Op == store.OpAny:
		return api.NewFilterAsCondition(&api.Filter{Should: conditions}), nil
	}
	return api.NewFilterAsCondition(&api.Filter{Must: conditions}), nil
}

func (x *Index) in(f store.Filter) (*api.Condition, error) {
	key, err := x.path(f.Key)
	if err != nil {
		return nil, err
	}
	var words []string
	var numbers []int64
	var conditions []*api.Condition
	for _, value := range f.Values {
		switch v := value.(type) {
		case string:
			words = append(words, v)
		case int64:
			numbers = append(numbers, v)
		case bool:
			conditions = append(conditions, api.NewMatchBool(key, v))
		}
	}
	if len(words) > 0 {
		conditions = append(conditions, api.NewMatchKeywords(key, words...))
	}
	if len(numbers) > 0 {
		conditions = append(conditions, api.NewMatchInts(key, numbers...))
	}
	if len(conditions) == 1 {
		return conditions[0], nil
	}
	return api.NewFilterAsCondition(&api.Filter{Should: conditions}), nil
}

func (x *Index) inRange(f store.Filter) (*api.Condition, error) {
	key, err := x.path(f.Key)
	if err != nil {
		return nil, err
	}
	r := &api.Range{}
	if !math.IsInf(f.Min, -1) {
		r.Gte = &f.Min
	}
	if !math.IsInf(f.Max, 1) {
		r.Lte = &f.Max
	}
	return api.NewRange(key, r), nil
}

// path returns where in the payload the metadata's key is, in the server's notation: parts that are not plain words stand
// in quotes.
func (x *Index) path(key string) (string, error) {
	var b strings.Builder
	if x.opts.Layout.Metadata != TopLevel {
		b.WriteString(x.opts.Layout.Metadata)
	}
	for part := range strings.SplitSeq(key, ".") {
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		switch {
		case plainKey.MatchString(part):
			b.WriteString(part)
		case part == "" || strings.ContainsRune(part, '"'):
			return "", fmt.Errorf("%w: Filter.Key = %q cannot be written as a path of the payload", store.ErrBadQuery, key)
		default:
			b.WriteString(`"` + part + `"`)
		}
	}
	return b.String(), nil
}
