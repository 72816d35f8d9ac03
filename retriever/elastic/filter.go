package elastic

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// encoded returns a query in the server's terms as JSON; nil if it is nil, or a pointer or map that is.
func encoded(query any) (any, error) {
	raw, err := json.Marshal(query)
	switch {
	case err != nil:
		return nil, fmt.Errorf("is a %T that does not encode to JSON: %w", query, err)
	case string(raw) == "null":
		return nil, nil
	case raw[0] != '{':
		return nil, fmt.Errorf("is a %T that encodes to %.100s, want a JSON object: a query of the server", query, raw)
	}
	return json.RawMessage(raw), nil
}

// restriction returns the conditions that a hit must fit: the tenant's, those of the options and those of the query.
func (x *Index) restriction(q store.Query) ([]any, error) {
	var out []any
	if x.opts.Layout.tenants() {
		out = append(out, term(x.opts.Layout.Tenant, q.Tenant))
	}
	if x.opts.Filter != nil {
		out = append(out, x.opts.Filter)
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
func (x *Index) condition(f store.Filter) (object, error) {
	switch f.Op {
	case store.OpTrue:
		return object{"match_all": object{}}, nil
	case store.OpIn:
		return x.in(f)
	case store.OpRange:
		return x.inRange(f), nil
	}
	inner := make([]any, len(f.Of))
	for i, g := range f.Of {
		var err error
		if inner[i], err = x.condition(g); err != nil {
			return nil, err
		}
	}
	switch f.Op {
	case store.OpAll:
		return object{"bool": object{"filter": inner}}, nil
	case store.OpAny:
		return object{"bool": object{"should": inner, "minimum_should_match": 1}}, nil
	case store.OpNot:
		return object{"bool": object{"must_not": inner}}, nil
	}
	return nil, fmt.Errorf("%w: Filter.Op = %d is unknown", store.ErrBadQuery, f.Op)
}

func term(field string, value any) object {
	return object{"term": object{field: object{"value": value}}}
}

func (x *Index) in(f store.Filter) (object, error) {
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
	return object{"terms": object{field: values}}, nil
}

func (x *Index) inRange(f store.Filter) object {
	field := x.mapped(f.Key)
	if !x.opts.Layout.Mapped {
		field = numbersField + "." + numberName(f.Key)
	}
	bounds := object{}
	if !math.IsInf(f.Min, -1) {
		bounds["gte"] = f.Min
	}
	if !math.IsInf(f.Max, 1) {
		bounds["lte"] = f.Max
	}
	if len(bounds) == 0 { // any number
		return object{"exists": object{"field": field}}
	}
	return object{"range": object{field: bounds}}
}

// mapped returns the field of metadata in an index that others made.
func (x *Index) mapped(key string) string {
	if x.opts.Layout.Metadata == TopLevel {
		return key
	}
	return x.opts.Layout.Metadata + "." + key
}
