// Package strictjson decodes JSON that people write, where an unknown member is a mistake, and encodes JSON as other languages do.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Decode decodes one JSON value that fills all of data and has no unknown members. Errors name the member.
func Decode(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: want %v, not a %s", wrong.Field, wrong.Type, wrong.Value)
	}
	if err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more behind the object")
	}
	return nil
}

// Encode returns v as JSON on one line, with characters of HTML as they are.
func Encode(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// Quote returns a text as a JSON string, see [Encode].
func Quote(text string) string {
	s, _ := Encode(text) // a string cannot fail
	return s
}
