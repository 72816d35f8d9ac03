package prefixdiff_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/prefixdiff"
)

// list is a body of messages, given as JSON.
func list(messages ...string) string {
	return `{"model":"m","messages":[` + strings.Join(messages, ",") + `]}`
}

func say(role, text string) string { return fmt.Sprintf(`{"role":%q,"content":%q}`, role, text) }

// call is a call of a tool by the assistant, and its result.
func call(id, arguments, result string) string {
	return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"find","arguments":%q}}]},`+
		`{"role":"tool","tool_call_id":%q,"content":%q}`, id, arguments, id, result)
}

// picture is a message with a picture and a question.
func picture(url, question string) string {
	return fmt.Sprintf(`{"role":"user","content":[{"type":"image_url","image_url":{"url":%q}},{"type":"text","text":%q}]}`, url, question)
}

// raw is a prompt in a chat template.
func raw(system string, turns ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<|im_start|>system\n%s<|im_end|>\n", system)
	for i, text := range turns {
		fmt.Fprintf(&b, "<|im_start|>%s\n%s<|im_end|>\n", []string{"user", "assistant"}[i%2], text)
	}
	return fmt.Sprintf(`{"model":"m","prompt":%q}`, b.String()+"<|im_start|>assistant\n")
}

const (
	long  = "The plums of this year were kept in the cellar of the old mill, and no one has counted them since the first snow fell."
	other = "Deliveries leave the yard before sunrise; a driver signs for every crate, and the office files the slips by their numbers."
)

var formCases = []planted{
	{
		"a clock in a chat template",
		raw("It is 04:14:05. "+rules, "Hi"),
		raw("It is 04:15:09. "+rules, "Hi", "Hello!", "And now?"),
		"clock", "prompt",
	},
	{"a chat template goes on", raw(rules, "Hi"), raw(rules, "Hi", "Hello!", "And now?"), "", ""},
	{
		"a window in a chat template",
		raw(rules, long, "Yes, one.", other),
		raw(rules, other, "Yes, two.", "And now?"),
		"edited-history", "prompt",
	},
	{
		"a written conversation loses its beginning",
		list(say("user", "A talk.\nHuman: "+long+"\nAI: Yes.\nHuman: "+other+"\nAI:")),
		list(say("user", "A talk.\nHuman: "+other+"\nAI: Yes, that.\nHuman: And now?\nAI:")), "edited-history", "messages[0]",
	},
	{
		"a call gets a new identifier", list(say("user", "Hi"), call("call_a1b2c3", `{"q":"plums"}`, long)),
		list(say("user", "Hi"), call("call_x7y8z9", `{"q":"plums"}`, long), say("user", "Go on")), "random-id", "messages[1].tool_calls[0].id",
	},
	{
		"another call has its own identifier", list(say("user", "Hi"), call("call_a1b2c3", `{"q":"plums"}`, long)),
		list(say("user", "Hi"), call("call_x7y8z9", `{"q":"crates"}`, other), say("user", "Go on")), "", "",
	},
	{
		"a result is cut", list(say("user", "Hi"), call("call_1", `{}`, long+" "+other)),
		list(say("user", "Hi"), call("call_1", `{}`, long[:60]+" [cut]"), say("assistant", "Well."), say("user", "Go on")),
		"edited-history", "messages[2].content",
	},
	{
		"a result is replaced", list(say("user", "Hi"), call("call_1", `{}`, long)),
		list(say("user", "Hi"), call("call_1", `{}`, "(removed)"), say("assistant", "Well."), say("user", "Go on")), "edited-history", "messages[2].content",
	},
	{
		"arguments are written again", list(say("user", "Hi"), call("call_1", `{"a":1,"b":2}`, long)),
		list(say("user", "Hi"), call("call_1", `{"b":2,"a":1}`, long), say("user", "Go on")), "map-order", "messages[1].tool_calls[0].function.arguments",
	},
	{
		"a picture is encoded again", list(say("system", rules), picture("data:image/png;base64,AAAA", "What is it?")),
		list(say("system", rules), picture("data:image/png;base64,BBBB", "What is it?"), say("assistant", "A plum."), say("user", "Really?")),
		"image", "messages[1].content[0].image_url.url",
	},
	{
		"another picture with another question",
		list(say("system", rules), picture("https://x/1", "What is it?"), say("assistant", "A plum, and it is ripe."), say("user", "Really?")),
		list(say("system", rules), picture("https://x/2", "Is it broken?"), say("assistant", "It is not."), say("user", "Sure?")), "", "",
	},
	{
		"parts change places", list(fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q},{"type":"text","text":%q}]}`, long, other)),
		list(fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q},{"type":"text","text":%q}]}`, other, long)),
		"document-order", "messages[0].content[0].text",
	},
	{
		"objects in a list change places", chat(rules, "", `[{"id":"d0","text":"`+long+`"},{"id":"d1","text":"`+other+`"}] Where?`),
		chat(rules, "", `[{"id":"d1","text":"`+other+`"},{"id":"d0","text":"`+long+`"}] Who?`), "document-order", "messages[1].content",
	},
	{
		"documents with numbers", chat("Source 1: "+long+"\n\nSource 2: "+other+"\n\n"+rules, "", "Hi"),
		chat("Source 1: "+other+"\n\nSource 2: "+long+"\n\n"+rules, "", "Hi"), "document-order", "messages[0].content",
	},
	{
		"a tool more in a text", chat("## Tools\n- find: finds pages of the shop\n- calc: computes a sum\n\n"+rules, "", "Hi"),
		chat("## Tools\n- find: finds pages of the shop\n- mail: sends a letter\n- calc: computes a sum\n\n"+rules, "", "Hi"),
		"tool-set", "messages[0].content",
	},
	{
		"a set of Python",
		chat("Use {'red', 'blue', 'green'}. "+rules, "", "Hi"),
		chat("Use {'green', 'red', 'blue'}. "+rules, "", "Hi"),
		"map-order", "messages[0].content",
	},
	{
		"words change places",
		chat("Offer pears before plums. "+rules, "", "Hi"),
		chat("Offer plums before pears. "+rules, "", "Hi"),
		"template", "messages[0].content",
	},
	{
		"a number in front of a message",
		chat(rules, "", "[3/10] "+long, "Yes.", other),
		chat(rules, "", "[4/10] "+long, "Yes.", other, "No.", "And?"),
		"counter", "messages[1].content",
	},
	{
		"notices of a user",
		chat("The user has 14 unread notices. "+rules, "", "Hi"),
		chat("The user has 15 unread notices. "+rules, "", "Hi"),
		"counter", "messages[0].content",
	},
	{"a name without capitals", chat("用户姓名:王小明。"+rules, "", "Hi"), chat("用户姓名:李娜。"+rules, "", "Hi"), "user-name", "messages[0].content"},
	{
		"a home folder",
		chat("Folder: /home/bjorn/src. "+rules, "", "Hi"),
		chat("Folder: /home/akiko/src. "+rules, "", "Hi"),
		"user-name", "messages[0].content",
	},
	{
		"a sentence has a capital letter",
		chat("Ten portions are for ten. Mark what is done. "+rules, "", "Hi"),
		chat("Ten portions are for ten. Say how long it takes. "+rules, "", "Hi"),
		"template", "messages[0].content",
	},
	{
		"a name at the end costs nothing",
		chat(rules+" The customer is Ada Okoye.", "", "Hi"),
		chat(rules+" The customer is Bo Lindqvist.", "", "Where?"),
		"", "",
	},
	{
		"a clock at the end is new each time",
		chat(rules+" It is 04:14:05", "", "Hi"),
		chat(rules+" It is 04:15:09", "", "Where?"),
		"clock", "messages[0].content",
	},
	{
		"escapes are letters",
		chat(rules, function("zur\u00fcck", ab), "Hi"),
		chat(rules, strings.ReplaceAll(function("zur\u00fcck", ab), "\u00fc", `\u00fc`), "Hi"),
		"", "",
	},
	{
		"a tab in a tool",
		chat(rules, strings.Replace(function("a", ab), "Looks", `List:\n  - Looks`, 1), "Hi"),
		chat(rules, strings.Replace(function("a", ab), "Looks", `List:\n\t- Looks`, 1), "Hi"),
		"whitespace", "tools[0].function.description",
	},
	{
		"a mark on a tool",
		list(say("user", long)) + "\n",
		strings.Replace(list(say("user", long)), `"content"`, `"cache_control":{"type":"ephemeral"},"content"`, 1),
		"", "",
	},
	{
		"documents behind another question",
		chat(rules, "", "Where are they?\n\n"+long+"\n"+other),
		chat(rules, "", "Who counts them?\n\n"+long+"\n"+other),
		"", "",
	},
}

func TestForms(t *testing.T) {
	for _, c := range formCases {
		for _, keep := range []bool{false, true} {
			x := index(t, prefixdiff.Config{KeepTexts: keep})
			x.Add(parse(t, c.first))
			f, ok := x.Add(parse(t, c.second))
			if ok != (c.cause != "") || f.Cause != c.cause || f.Path != c.path {
				t.Errorf("%s (texts kept: %v): %v %s at %q, want %q at %q (%+v)", c.name, keep, ok, f.Cause, f.Path, c.cause, c.path, f)
			}
		}
	}
}
