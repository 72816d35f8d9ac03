package elastic

import (
	"fmt"
	"math"

	"github.com/elastic/go-elasticsearch/v8/typedapi/types"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// restriction returns the conditions that a hit must fit: the tenant's, those of the options and those of the query.
func (x *Index) restriction(q store.Query) ([]types.Query, error) {
	var out []types.Query
	if x.opts.Layout.tenants() {
		out = append(out, term(x.opts.Layout.Tenant, q.Tenant))
	}
	if x.opts.Filter != nil {
		out = append(out, *x.opts.Filter)
	}
	if q.Filter.Op != store.OpTrue {
		c, err := x.condition(q.Filter)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// condition translates a filter, which has been checked.
func (x *Index) condition(f store.Filter) (types.Query, error) {
	switch f.Op {
	case store.OpTrue:
		return types.Query{MatchAll: &types.MatchAllQuery{}}, nil
	case store.OpIn:
		return x.in(f)
	case store.OpRange:
		return x.inRange(f), nil
	}
	inner := make([]types.Query, len(f.Of))
	for i, g := range f.Of {
		var err error
		if inner[i], err = x.condition(g); err != nil {
			return types.Query{}, err
		}
	}
	switch f.Op {
	case store.OpAll:
		return types.Query{Bool: &types.BoolQuery{Filter: inner}}, nil
	case store.OpAny:
		return types.Query{Bool: &types.BoolQuery{Should: inner, MinimumShouldMatch: 1}}, nil
	case store.OpNot:
		return types.Query{Bool: &types.BoolQuery{MustNot: inner}}, nil
	}
	return types.Query{}, fmt.Errorf("%w: Filter.Op = %d is unknown", store.ErrBadQuery, f.Op)
}

func term(field string, value any) types.Query {
	return types.Query{Term: map[string]types.TermQuery{field: {Value: value}}}
}

func (x *Index) in(f store.Filter) (types.Query, error) {
	field, values := x.mapped(f.Key), f.Values
	if !x.opts.Layout.Mapped {
		field, values = facetsField+"."+f.Key, make([]any, len(f.Values))
		for i, v := range f.Values {
			values[i] = facet(v)
		}
	}
	if len(values) == 1 {
		return term(field, values[0]), nil
	}
	return types.Query{Terms: &types.TermsQuery{TermsQuery: map[string]types.TermsQueryField{field: values}}}, nil
}

func (x *Index) inRange(f store.Filter) types.Query {
	field := x.mapped(f.Key)
	if !x.opts.Layout.Mapped {
		field = numbersField + "." + numberName(f.Key)
	}
	r := types.NumberRangeQuery{}
	if !math.IsInf(f.Min, -1) {
		low := types.Float64(f.Min)
		r.Gte = &low
	}
	if !math.IsInf(f.Max, 1) {
		high := types.Float64(f.Max)
		r.Lte = &high
	}
	if r.Gte == nil && r.Lte == nil { // any number
		return types.Query{Exists: &types.ExistsQuery{Field: field}}
	}
	return types.Query{Range: map[string]types.RangeQuery{field: r}}
}

// mapped returns the field of metadata in an index that others made.
func (x *Index) mapped(key string) string {
	if x.opts.Layout.Metadata == TopLevel {
		return key
	}
	return x.opts.Layout.Metadata + "." + key
}
