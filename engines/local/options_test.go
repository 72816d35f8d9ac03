package local

import (
	"encoding/json"
	"testing"
)

// An empty value stands for no member, so that one request can be sent to engines of any kind.
func TestEmptyMembersAreNone(t *testing.T) {
	o, err := readOptions(map[string]json.RawMessage{
		"max_tokens": nil, "stop": {}, "temperature": nil, "max_completion_tokens": json.RawMessage("7"),
	})
	if err != nil || o.MaxTokens != nil || o.Stop != nil || o.Temperature != nil || *o.MaxCompletionTokens != 7 {
		t.Errorf("%+v, %v", o, err)
	}
}
