package store

import (
	"fmt"
	"math"
	"reflect"
)

// ValidMetadata returns a copy of the metadata as it is stored: whole numbers as int64, also those that JSON made floats
// of, other numbers as float64, lists as []any, strings as [ValidText] makes them. Nil stays nil. A value of another type,
// a number that is not finite, or nesting without end is an error that wraps [ErrBadDocument] and names the key.
func ValidMetadata(metadata map[string]any) (map[string]any, error) {
	if metadata == nil {
		return nil, nil
	}
	return validMap(metadata, maxDepth)
}

func validMap(in map[string]any, depth int) (map[string]any, error) {
	out := make(map[string]any, len(in))
	for key, value := range in {
		v, err := validValue(value, depth)
		if err != nil {
			return nil, fmt.Errorf("metadata %q: %w", key, err)
		}
		out[ValidText(key)] = v
	}
	return out, nil
}

func validValue(value any, depth int) (any, error) {
	if depth == 0 {
		return nil, fmt.Errorf("%w: values are nested more than %d deep", ErrBadDocument, maxDepth)
	}
	switch v := normal(value).(type) {
	case nil, bool, int64:
		return v, nil
	case string:
		return ValidText(v), nil
	case float64:
		return finite(v)
	case map[string]any:
		return validMap(v, depth-1)
	case []any:
		return validList(v, depth-1)
	case []string:
		return validList(v, depth-1)
	case []int:
		return validList(v, depth-1)
	case []int64:
		return validList(v, depth-1)
	case []float64:
		return validList(v, depth-1)
	}
	return nil, fmt.Errorf("%w: value of type %T, want nil, string, bool, a number, a list or a map", ErrBadDocument, value)
}

func finite(n float64) (any, error) {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return nil, fmt.Errorf("%w: number %v", ErrBadDocument, n)
	}
	return n, nil
}

func validList[T any](in []T, depth int) (any, error) {
	out := make([]any, len(in))
	for i, value := range in {
		v, err := validValue(value, depth)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// maxExact is 2^53: up to there every whole number is a float64.
const maxExact = 1 << 53

// normal returns whole numbers as int64, other numbers as float64, and everything else as it is.
func normal(v any) any {
	switch n := reflect.ValueOf(v); n.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return n.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if n.Uint() <= math.MaxInt64 {
			return int64(n.Uint())
		}
	case reflect.Float32, reflect.Float64:
		if f := n.Float(); f == math.Trunc(f) && math.Abs(f) <= maxExact {
			return int64(f)
		}
		return n.Float()
	case reflect.String:
		return n.String()
	case reflect.Bool:
		return n.Bool()
	}
	return v
}
