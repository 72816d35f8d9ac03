package dispatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schema checks answers against a JSON schema.
type schema struct {
	compiled *jsonschema.Schema
	format   json.RawMessage // the member response_format of a request's body
}

// nothing loads no schema: a reference to a file or an address is an error.
type nothing struct{}

func (nothing) Load(string) (any, error) {
	return nil, errors.New("only references within the schema are followed")
}

// CheckSchema returns what is wrong with a schema; nil: it can be the Schema of a [Config].
func CheckSchema(raw json.RawMessage) error {
	_, err := newSchema(raw)
	return err
}

// newSchema compiles a schema, which may only refer to itself.
func newSchema(raw json.RawMessage) (*schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	const here = "urn:schema" // a name without a place: a relative one would become a path of this machine
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nothing{})
	if err := compiler.AddResource(here, document); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(here)
	if err != nil {
		return nil, err
	}
	format, err := json.Marshal(map[string]any{
		"type": "json_schema", "json_schema": map[string]any{"name": "answer", "schema": raw},
	})
	if err != nil {
		return nil, err
	}
	return &schema{compiled: compiled, format: format}, nil
}

// check says why an answer does not match the schema; empty: it does.
func (s *schema) check(text string) string {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return "the answer is not JSON: " + err.Error()
	}
	err = s.compiled.Validate(value)
	if err == nil {
		return ""
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err.Error()
	}
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0] // the first one says enough
	}
	return invalid.Error()
}
