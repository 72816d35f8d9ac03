package elastic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// What filters ask for is kept beside the metadata in two fields. "facets" holds, by dotted key, each value as a word that
// begins with its type: the field is flattened, so that a key may hold a string here and a number there, and no document
// adds to the mapping. "numbers" holds the numbers, for ranges, one field a key.
//
// The metadata itself is stored and not indexed.

// maxFacet bounds a word; longer strings are compared by hash. Lucene's limit is 32,766 bytes, key included.
const maxFacet = 1 << 10

// facet returns the word of a value: a string, boolean or number. "" stands for any other.
func facet(value any) string {
	switch v := value.(type) {
	case string:
		if len(v) > maxFacet {
			sum := sha256.Sum256([]byte(v))
			return "h:" + hex.EncodeToString(sum[:])
		}
		return "s:" + v
	case bool:
		return "b:" + strconv.FormatBool(v)
	case int64:
		return "n:" + strconv.FormatInt(v, 10)
	case json.Number:
		return numberFacet(v)
	}
	return ""
}

// numberFacet gives whole numbers the same word whether they are written 3, 3.0 or 3e0.
func numberFacet(n json.Number) string {
	if i, err := n.Int64(); err == nil {
		return facet(i)
	}
	f, err := n.Float64()
	if err != nil {
		return ""
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return facet(int64(f))
	}
	return "n:" + strconv.FormatFloat(f, 'g', -1, 64)
}

// flatten collects the facets and numbers of an object, by dotted key.
func flatten(prefix string, object map[string]any, facets map[string][]string, numbers map[string][]float64) {
	for key, value := range object {
		if inner, ok := value.(map[string]any); ok {
			flatten(prefix+key+".", inner, facets, numbers)
			continue
		}
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, v := range list {
			if word := facet(v); word != "" {
				facets[prefix+key] = append(facets[prefix+key], word)
			}
			if n, ok := v.(json.Number); ok {
				if f, err := n.Float64(); err == nil {
					name := numberName(prefix + key)
					numbers[name] = append(numbers[name], f)
				}
			}
		}
	}
}

// numberName makes a field's name of a key: fields must not be empty, nor have spaces and dots in some places.
func numberName(key string) string {
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}
