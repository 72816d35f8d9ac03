package chattemplate

import (
	"fmt"
	"regexp"
	"strings"
)

// defaultSystem finds the literal of a default system prompt in a ChatML program: a whole system turn in one string. The
// line end is a real one or written \n.
var defaultSystem = regexp.MustCompile(`<\|im_start\|>system(?:\n|\\n)([^'"{}<]+)<\|im_end\|>`)

// Recognize returns the template of a Jinja program. If it is of no known family, or empty, the template is plain
// ChatML and warning says so; otherwise warning is "".
func Recognize(jinja string) (t Template, warning string) {
	switch {
	case strings.Contains(jinja, "<|im_start|>") && strings.Contains(jinja, "<|im_end|>"):
		t.Thinking = strings.Contains(jinja, "</think>")
		if m := defaultSystem.FindStringSubmatch(jinja); m != nil {
			t.System = strings.ReplaceAll(m[1], `\n`, "\n")
		}
		return t, ""
	case strings.Contains(jinja, "<|start_header_id|>") && strings.Contains(jinja, "<|eot_id|>"):
		return Template{Family: Llama3, Dated: strings.Contains(jinja, "Cutting Knowledge Date")}, ""
	case jinja == "":
		return t, "the model has no chat template: chats are written as ChatML"
	}
	const shown = 60
	begin := strings.Join(strings.Fields(jinja), " ")
	if len(begin) > shown {
		begin = strings.ToValidUTF8(begin[:shown], "") + "…"
	}
	return t, fmt.Sprintf("the model's chat template (%q) is of no known family: chats are written as ChatML", begin)
}
