package prefixdiff_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/prefixdiff"
)

const tool = `{"type":"function","function":{"name":%q,"description":"Looks up %s of a customer's order.",` +
	`"parameters":{"type":"object","properties":{%s},"required":["a","b"]}}}`

func function(name, members string) string { return fmt.Sprintf(tool, name, name, members) }

const (
	ab = `"a":{"type":"string","description":"the first"},"b":{"type":"integer"}`
	ba = `"b":{"type":"integer"},"a":{"type":"string","description":"the first"}`
)

// chat is a body with a system text and a conversation of users and assistants in turn.
func chat(system, tools string, turns ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":"m","messages":[{"role":"system","content":%q}`, system)
	for i, text := range turns {
		fmt.Fprintf(&b, `,{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], text)
	}
	b.WriteString("]")
	if tools != "" {
		b.WriteString(`,"tools":[` + tools + `]`)
	}
	b.WriteString("}")
	return b.String()
}

const rules = "Answer in the language of the question. Never invent an order number. " +
	"If you are not sure, ask one short question and wait for the answer."

var documents = []string{
	"[%d] Apples are kept in the cellar, since it is cold there all the year.\n",
	"[%d] Pears are kept in the kitchen and eaten within a week of their arrival.\n",
	"[%d] Plums come from the valley, where they ripen late in the summer.\n",
	"[%d] Cherries are the first fruit of the year, and the birds like them best.\n",
}

func docs(order ...int) string {
	var b strings.Builder
	for i, d := range order {
		fmt.Fprintf(&b, documents[d], i+1)
	}
	return b.String()
}

type planted struct {
	name, first, second string
	cause               prefixdiff.Cause // "": no finding
	path                string
}

var plantedCases = []planted{
	{
		"clock",
		chat("It is 2026-11-27T04:14:05Z. "+rules, "", "Hi"),
		chat("It is 2026-11-27T04:15:09Z. "+rules, "", "Hi", "Hello!", "Where is it?"),
		"clock", "messages[0].content",
	},
	{
		"clock in words",
		chat("Today is Friday, November 27, 2026.\n"+rules, "", "Hi"),
		chat("Today is Saturday, November 28, 2026.\n"+rules, "", "Hi"),
		"clock", "messages[0].content",
	},
	{
		"clock unix",
		chat("ts 1795752845\n"+rules, "", "Hi"),
		chat("ts 1795752999\n"+rules, "", "Hi"),
		"clock", "messages[0].content",
	},
	{
		"request id",
		chat("Request 550e8400-e29b-41d4-a716-446655440000. "+rules, "", "Hi"),
		chat("Request 6ba7b810-9dad-11d1-80b4-00c04fd430c8. "+rules, "", "Hi"),
		"random-id", "messages[0].content",
	},
	{
		"counter",
		chat("This is turn 3 of the conversation. "+rules, "", "Hi"),
		chat("This is turn 4 of the conversation. "+rules, "", "Hi"),
		"counter", "messages[0].content",
	},
	{
		"name",
		chat("You help Alice Miller with her orders. "+rules, "", "Hi"),
		chat("You help Bob with her orders. "+rules, "", "Hi"),
		"user-name", "messages[0].content",
	},
	{
		"name by key",
		chat("User: jdoe\n"+rules, "", "Hi"),
		chat("User: asmith\n"+rules, "", "Hi"),
		"user-name", "messages[0].content",
	},
	{
		"mail",
		chat("For anna@example.com. "+rules, "", "Hi"),
		chat("For otto@example.org. "+rules, "", "Hi"),
		"user-name", "messages[0].content",
	},
	{
		"template",
		chat("You are a friendly clerk of the shop. "+rules, "", "Hi"),
		chat("You are an expert who works here. "+rules, "", "Hi"),
		"template", "messages[0].content",
	},
	{
		"white space",
		chat("Be brief.\n\n"+rules, "", "Hi"),
		chat("Be brief.\r\n\r\n"+rules, "", "Hi"),
		"whitespace", "messages[0].content",
	},
	{
		"two spaces",
		chat("Be  brief. "+rules, "", "Hi"),
		chat("Be brief. "+rules, "", "Hi"),
		"whitespace", "messages[0].content",
	},
	{
		"documents",
		chat(rules, "", docs(0, 1, 2, 3)+"Where are plums?"),
		chat(rules, "", docs(2, 0, 1, 3)+"Which fruit is first?"),
		"document-order", "messages[1].content",
	},
	{
		"documents in the system text",
		chat(docs(0, 1, 2)+rules, "", "Hi"),
		chat(docs(1, 0, 2)+rules, "", "Hi"),
		"document-order", "messages[0].content",
	},
	{
		"map as lines",
		chat("Settings:\n- color: red\n- size: large\n- shape: round\n\n"+rules, "", "Hi"),
		chat("Settings:\n- size: large\n- color: red\n- shape: round\n\n"+rules, "", "Hi"),
		"map-order", "messages[0].content",
	},
	{
		"map as JSON",
		chat(`State: {"color":"red","size":"large","n":5}. `+rules, "", "Hi"),
		chat(`State: {"size":"large","n":5,"color":"red"}. `+rules, "", "Hi"),
		"map-order", "messages[0].content",
	},
	{
		"tools as lines",
		chat("Tools:\n- search: finds pages\n- calc: computes\n\n"+rules, "", "Hi"),
		chat("Tools:\n- calc: computes\n- search: finds pages\n\n"+rules, "", "Hi"),
		"tool-order", "messages[0].content",
	},
	{
		"members",
		chat(rules, function("order", ab), "Hi"),
		chat(rules, function("order", ba), "Hi"),
		"map-order", "tools[0].function.parameters.properties",
	},
	{
		"required",
		chat(rules, function("order", ab), "Hi"),
		chat(rules, strings.Replace(function("order", ab), `["a","b"]`, `["b","a"]`, 1), "Hi"),
		"map-order", "tools[0].function.parameters.required",
	},
	{
		"tool order",
		chat(rules, function("order", ab)+","+function("price", ab), "Hi"),
		chat(rules, function("price", ab)+","+function("order", ab), "Hi"),
		"tool-order", "tools[0]",
	},
	{
		"tool more",
		chat(rules, function("order", ab), "Hi"),
		chat(rules, function("order", ab)+","+function("price", ab), "Hi"),
		"tool-set", "tools[1]",
	},
	{
		"tool less",
		chat(rules, function("order", ab)+","+function("price", ab), "Hi"),
		chat(rules, function("order", ab), "Hi"),
		"tool-set", "tools[1]",
	},
	{
		"tool changed",
		chat(rules, function("order", ab), "Hi"),
		chat(rules, function("order", ab+`,"c":{"type":"string"}`), "Hi"),
		"tool-set", "tools[0].function.parameters.properties",
	},
	{
		"clock in a tool",
		chat(rules, strings.Replace(function("order", ab), "Looks", "Now 04:14:05. Looks", 1), "Hi"),
		chat(rules, strings.Replace(function("order", ab), "Looks", "Now 04:15:09. Looks", 1), "Hi"),
		"clock", "tools[0].function.description",
	},
	{
		"window",
		chat(rules, "", "One is first", "Yes, one.", "Two is next", "Yes, two.", "Three?"),
		chat(rules, "", "Two is next", "Yes, two.", "Three?", "Yes, three.", "Four?"),
		"edited-history", "messages[1]",
	},
	{
		"shortened answer",
		chat(rules, "", "Describe fruit", docs(0, 1, 2, 3), "Go on with vegetables"),
		chat(rules, "", "Describe fruit", docs(0, 1), "Go on with vegetables", "Well", "And?"),
		"edited-history", "messages[2].content",
	},
	{
		"model",
		chat(rules, "", "Hi"),
		strings.Replace(chat(rules, "", "Hi"), `"m"`, `"n"`, 1),
		"model", "model",
	},
	{
		"salt",
		strings.Replace(chat(rules, "", "Hi"), `{`, `{"cache_salt":"x",`, 1),
		strings.Replace(chat(rules, "", "Hi"), `{`, `{"cache_salt":"y",`, 1),
		"salt", "cache_salt",
	},

	{
		"another question",
		chat(rules, "", "What is the price of apples?"),
		chat(rules, "", "What is the price of pears, please?"),
		"", "",
	},
	{
		"goes on",
		chat(rules, "", "Hi"),
		chat(rules, "", "Hi", "Hello!", "What now?"),
		"", "",
	},
	{
		"another conversation",
		chat(rules, "", "Hi", "Hello! How can I help you today?", "Apples"),
		chat(rules, "", "Good morning", "Hello! How can I help you today?", "Where do plums grow?"),
		"", "",
	},
	{
		"another program",
		chat("You translate from French.", "", "Bonjour"),
		chat("As an editor, improve what you are given.", "", "A cat sit"),
		"", "",
	},
	{
		"other documents",
		chat(rules, "", docs(0, 1)+"Answer from the text."),
		chat(rules, "", docs(2, 3)+"Answer from the text."),
		"", "",
	},
	{
		"temperature",
		chat(rules, "", "Hi"),
		strings.Replace(chat(rules, "", "Hi"), `{`, `{"temperature":0.5,`, 1),
		"", "",
	},
}

func TestPlantedCauses(t *testing.T) {
	for _, c := range plantedCases {
		first, second := parse(t, c.first), parse(t, c.second)
		for name, cfg := range map[string]prefixdiff.Config{
			"hashes": {}, "texts": {KeepTexts: true}, "loaded": {Load: func(int) (prefixdiff.Prompt, error) { return parse(t, c.first), nil }},
		} {
			x, err := prefixdiff.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if f, ok := x.Add(first); ok {
				t.Errorf("%s, %s: the first request: %+v", c.name, name, f)
			}
			f, ok := x.Add(second)
			if ok != (c.cause != "") || f.Cause != c.cause || f.Path != c.path {
				t.Errorf("%s, %s: %v %s at %q, want %q at %q (%+v)", c.name, name, ok, f.Cause, f.Path, c.cause, c.path, f)
			}
			if name == "hashes" && (f.Was != "" || f.Is != "") {
				t.Errorf("%s: texts without KeepTexts: %+v", c.name, f)
			}
		}
	}
}

func parse(t testing.TB, body string) prefixdiff.Prompt {
	t.Helper()
	p, err := prefixdiff.Parse([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return p
}
