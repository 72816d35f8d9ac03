// Package validjson checks whether bytes are JSON, faster than encoding/json and as safe.
package validjson

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"
)

// Valid reports whether raw is one JSON value of at most 10,000 levels. gjson is three times as fast as encoding/json, but knows no limit
// of nesting, so that a deep value ends the process: what could be deep is left to encoding/json.
func Valid(raw []byte) bool {
	if bytes.Count(raw, []byte{'['})+bytes.Count(raw, []byte{'{'}) > 10_000 {
		return json.Valid(raw)
	}
	return gjson.ValidBytes(raw)
}
