package chattemplate

import (
	"fmt"
	"regexp"
	"strings"
)

// defaultSystem finds the literal of a default system prompt in a ChatML program: a whole system turn in one string. The
// line end is a real one or written \n.
var defaultSystem = regexp.MustCompile(`<\|im_start\|>system(?:\n|\\n)([^'"{}<]+)<\|im_end\|>`)

// Programs of Zephyr end a turn of the user with the token that ends a text. Others write the same names of roles, but
// other ends of turns.
var zephyrTurn = regexp.MustCompile(`<\|user\|>(?:\n|\\n)['"] *\+ *message\[['"]content['"]\] *\+ *(?:eos_token|['"]</s>)`)

// Blanks of Mistral's programs: in front of a question, in front of an answer and behind its end.
var (
	blankQuestion = regexp.MustCompile(`['"] \[INST\]`)
	blankAnswer   = regexp.MustCompile(`['"] ['"] *\+ *\(?(?:message|content)`)
	blankTurn     = regexp.MustCompile(`eos_token *\+ *['"] ['"]`)
)

// mistral reports whether a program is one of Mistral's. Programs of Llama 2, and later ones of Mistral, write system
// messages between names.
func mistral(jinja string) bool {
	return strings.Contains(jinja, "[INST] ") && strings.Contains(jinja, "[/INST]") &&
		!strings.Contains(jinja, "<<SYS>>") && !strings.Contains(jinja, "[SYSTEM_PROMPT]")
}

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
	case zephyrTurn.MatchString(jinja):
		return Template{Family: Zephyr}, ""
	case mistral(jinja):
		return Template{Family: Mistral, Blanks: Blanks{
			Question: blankQuestion.MatchString(jinja), End: strings.Contains(jinja, " [/INST]"),
			Answer: blankAnswer.MatchString(jinja), Turn: blankTurn.MatchString(jinja),
		}}, ""
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
