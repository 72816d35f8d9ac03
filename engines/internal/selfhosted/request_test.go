package selfhosted

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// The tokenizer is asked with all of a request that its tokens depend on, and nothing else.
func TestRequestQuestion(t *testing.T) {
	question, tokens, err := requestQuestion([]byte(`{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[1],"chat_template_kwargs":{"x":1},"max_tokens":3,"user":"u"}`))
	var got map[string]any
	if err != nil || tokens != nil || json.Unmarshal(question, &got) != nil || len(got) != 4 || got["tools"] == nil || got["chat_template_kwargs"] == nil {
		t.Errorf("%s, %v, %v", question, tokens, err)
	}
	if question, _, err = requestQuestion([]byte(`{"prompt":"a","add_special_tokens":false}`)); err != nil || !strings.Contains(string(question), `"prompt":"a"`) {
		t.Errorf("%s, %v", question, err)
	}
	if _, tokens, err = requestQuestion([]byte(`{"prompt":[1,2]}`)); err != nil || !slices.Equal(tokens, []uint32{1, 2}) {
		t.Errorf("%v, %v", tokens, err)
	}
	for _, bad := range []string{``, `[]`, `{}`, `{"prompt":["a","b"]}`, `{"prompt":[]}`, `{"prompt":[-1]}`, `{"prompt":"a","messages":[]}`} {
		if _, _, err := requestQuestion([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestAdapters(t *testing.T) {
	m, err := ParseModels([]byte(`{"data":[{"id":"m","parent":null},{"id":"lora","parent":"m"}]}`))
	if err != nil || !slices.Equal(m.Adapters, []string{"lora"}) || len(m.IDs) != 2 {
		t.Errorf("%+v, %v", m, err)
	}
}
