package diagnosis

import (
	"strings"
	"testing"
)

func TestCutPath(t *testing.T) {
	for path, want := range map[string]string{
		"":                            "",
		"messages[0].content":         "messages[0].content",
		"messages[3].content[1].text": "messages[3].content[1].text",
		"system[0].text":              "system[0].text",
		"tools[0].function.parameters.properties.password":             "tools[0].function.parameters",
		"tools[12].function.parameters.properties.content.description": "tools[12].function.parameters",
		"tools[0].input_schema.properties.text":                        "tools[0].input_schema",
		"tools[0].functionDeclarations[1].parameters.x":                "tools[0].functionDeclarations[1].parameters",
		"tools[0].function.description":                                "tools[0].function.description",
		"tools[0].password":                                            "tools[0]",
		"messages[1].tool_calls[0].function.arguments":                 "messages[1].tool_calls[0].function.arguments",
		"messages[1].tool_calls[0].function.arguments.text":            "messages[1].tool_calls[0].function.arguments",
		"messages[1].content[0].input.text":                            "messages[1].content[0].input",
		"messages[2].name":                                             "messages[2].name",
		"input[3].content[0].text":                                     "input[3].content[0].text",
		"body.input[3].content":                                        "body.input[3].content",
		"input.messages[0].content":                                    "input.messages[0].content",
		"messages[1].content[0].secret.text":                           "messages[1].content[0]",
		"messages[secret].content":                                     "",
		"chat_template_kwargs.secret":                                  "chat_template_kwargs",
		"response_format.json_schema.schema.properties.x":              "response_format.json_schema",
		"content[0].text[":                                             "content[0]",
		"secret":                                                       "",
	} {
		if got := cutPath(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

// FuzzCutPath: what is shown is a beginning of the path, made of the APIs' names.
func FuzzCutPath(f *testing.F) {
	f.Add("tools[0].function.parameters.properties.password")
	f.Fuzz(func(t *testing.T, path string) {
		got := cutPath(path)
		if !strings.HasPrefix(path, got) {
			t.Fatalf("%q of %q", got, path)
		}
		if got == "" {
			return
		}
		for name := range strings.SplitSeq(got, ".") {
			if name, _, _ = strings.Cut(name, "["); !members[name] {
				t.Fatalf("%q of %q", got, path)
			}
		}
	})
}
