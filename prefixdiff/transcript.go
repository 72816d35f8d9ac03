package prefixdiff

import (
	"strings"
)

// A prompt that is one text may have a conversation in it, written with a model's chat template or as lines such as "Human: …". It is read
// as the messages that it is made of.

// marks are what stands in front of a message in chat templates.
var marks = []struct {
	text string
	role Role
}{
	{"<|im_start|>system", System},
	{"<|im_start|>user", User},
	{"<|im_start|>assistant", Assistant},
	{"<|im_start|>tool", Tool},
	{"<|start_header_id|>system<|end_header_id|>", System},
	{"<|start_header_id|>user<|end_header_id|>", User},
	{"<|start_header_id|>assistant<|end_header_id|>", Assistant},
	{"<|start_header_id|>ipython<|end_header_id|>", Tool},
	{"<|start_header_id|>tool<|end_header_id|>", Tool},
	{"<start_of_turn>system", System},
	{"<start_of_turn>user", User},
	{"<start_of_turn>model", Assistant},
	{"<|system|>", System},
	{"<|user|>", User},
	{"<|assistant|>", Assistant},
	{"<|start|>system", System},
	{"<|start|>developer", System},
	{"<|start|>user", User},
	{"<|start|>assistant", Assistant},
	{"<｜User｜>", User},
	{"<｜Assistant｜>", Assistant},
	{"[SYSTEM_PROMPT]", System},
	{"<<SYS>>", System},
	{"<</SYS>>", User},
	{"[INST]", User},
	{"[/INST]", Assistant},
}

// names are what lines of a conversation begin with, in lower case.
var names = map[string]Role{
	"human": User, "user": User, "ai": Assistant, "assistant": Assistant, "bot": Assistant, "system": System,
	"utilisateur": User, "benutzer": User, "nutzer": User, "usuario": User, "usuário": User, "utente": User, "assistent": Assistant,
	"asistente": Assistant, "assistente": Assistant, "用户": User, "助手": Assistant, "ユーザー": User, "アシスタント": Assistant,
	"пользователь": User, "ассистент": Assistant, "human message": User, "### human": User, "### user": User, "### assistant": Assistant,
	"### instruction": User, "### response": Assistant, "### system": System,
}

// start is where a message begins in a text.
type start struct {
	at, mark int // its first byte, and the length of the mark
	role     Role
}

// transcript adds a text, as the messages in it if there are at least two. What marks a message is its role, and no part of its text.
func (r *reader) transcript(path, text string) {
	starts := marked(text)
	if len(starts) < 2 {
		starts = spoken(text)
	}
	if len(starts) < 2 {
		r.add(path, Text, User, r.turn, text)
		return
	}
	from, role := 0, System // what stands in front of the first message
	add := func(to int) {
		if to > from || role != System {
			turn := r.turn
			if role == System && r.turn == 0 {
				turn = Front
			}
			kind := Text
			if turn == Front && to < maxName && strings.HasPrefix(text, "<") {
				kind = Opaque // the mark of the beginning
			}
			r.parts = append(r.parts, Part{Path: r.prefix + path, Kind: kind, Role: role, Turn: turn, Text: text[from:to], At: from})
			if turn != Front {
				r.turn++
			}
		}
	}
	for _, s := range starts {
		add(s.at)
		from, role = s.at+s.mark, s.role
	}
	if role != Assistant || strings.TrimSpace(text[from:]) != "" { // else it asks for an answer
		add(len(text))
	}
}

// marked finds the marks of a chat template.
func marked(text string) []start {
	var out []start
	for i := 0; i < len(text); {
		j := strings.IndexAny(text[i:], "<[")
		if j < 0 {
			break
		}
		i += j
		n := 1
		for _, m := range marks {
			if strings.HasPrefix(text[i:], m.text) {
				out = append(out, start{i, len(m.text), m.role})
				n = len(m.text)
				break
			}
		}
		i += n
	}
	return out
}

// maxName is the length in bytes of a name in front of a colon.
const maxName = 40

// spoken finds lines that begin with the name of who speaks. There must be a user among them, and an assistant.
func spoken(text string) []start {
	var out []start
	roles := map[Role]bool{}
	for i := 0; i < len(text); {
		end := strings.IndexByte(text[i:], '\n')
		if end < 0 {
			end = len(text) - i
		}
		if role, mark := speaker(text[i : i+end]); mark > 0 {
			out = append(out, start{i, mark, role})
			roles[role] = true
		}
		i += end + 1
	}
	if !roles[User] || !roles[Assistant] {
		return nil
	}
	return out
}

// speaker returns who speaks in a line, and the length of the name and the colon; 0: it is no such line.
func speaker(line string) (Role, int) {
	line = line[:min(len(line), maxName)]
	i, mark := strings.IndexByte(line, ':'), 1
	if w := strings.Index(line, "："); w >= 0 && (i < 0 || w < i) {
		i, mark = w, len("：")
	}
	if i <= 0 {
		return 0, 0
	}
	if role, ok := names[strings.ToLower(strings.Trim(line[:i], " *\t"))]; ok {
		return role, i + mark
	}
	return 0, 0
}
