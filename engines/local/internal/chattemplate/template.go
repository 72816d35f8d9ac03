package chattemplate

import (
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
)

// Piece is a part of a rendered chat: the name of one special token, or ordinary text between two of them, in which
// names of special tokens mean nothing. Encoding each piece by itself gives the tokens of the whole, if the vocabulary has
// all the names; one that it lacks is ordinary text together with what is beside it.
type Piece struct {
	Text    string
	Special bool
}

// Family is a way of writing chats.
type Family uint8

// The families.
const (
	ChatML Family = iota
	Llama3
	Zephyr
	Mistral
)

// String returns the family's name.
func (f Family) String() string {
	switch f {
	case Llama3:
		return "llama-3"
	case Zephyr:
		return "zephyr"
	case Mistral:
		return "mistral"
	}
	return "chatml"
}

// Template turns chats into text. The zero value is plain ChatML. Its fields may be changed: without System it is the
// template without its default system prompt.
type Template struct {
	Family Family
	// System is the system prompt of chats that do not begin with one; "": they get none.
	System string
	// Dated: a system turn always comes first and begins with two dates, as Llama 3.1 and later have it.
	Dated bool
	// Thinking: of earlier answers, what stands before "</think>" is left out, as Qwen 3 has it.
	Thinking bool
	// NoThinking: where Thinking is set, the beginning of an answer has an empty block of thoughts, as Qwen 3's program writes it with
	// enable_thinking false. The model then answers at once.
	NoThinking bool
	// Blanks are where Mistral's programs write a blank, which depends on their version.
	Blanks Blanks
}

// Blanks says where there is a blank: before [INST], before [/INST], before an answer, behind the end of one. There is always
// one behind [INST].
type Blanks struct{ Question, End, Answer, Turn bool }

// dates are what templates of Llama 3.1 and later write when they get no date. It is a constant, so that the same
// chat gives the same tokens on every day.
const dates = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"

// Render returns a chat, whose roles are "system", "user" and "assistant", in pieces, with the beginning of the assistant's next turn if
// answer is set. It writes everything that the text has, also the token that begins a text where the family has one: nothing must be added.
func (t Template) Render(chat []engines.Message, answer bool) []Piece {
	w := &writer{}
	switch t.Family {
	case Llama3:
		t.llama3(w, chat, answer)
	case Zephyr:
		t.zephyr(w, chat, answer)
	case Mistral:
		t.mistral(w, chat)
	default:
		t.chatML(w, chat, answer)
	}
	return w.pieces
}

func (t Template) chatML(w *writer, chat []engines.Message, answer bool) {
	turn := func(role, content string) {
		w.special("<|im_start|>")
		w.text(role + "\n" + content)
		w.special("<|im_end|>")
		w.text("\n")
	}
	if t.System != "" && len(chat) > 0 && chat[0].Role != "system" {
		turn("system", t.System)
	}
	last := lastQuestion(chat)
	for i, m := range chat {
		content := m.Content
		if t.Thinking && m.Role == "assistant" {
			content = t.answer(content, i < last)
		}
		turn(string(m.Role), content)
	}
	if answer {
		w.special("<|im_start|>")
		w.text("assistant\n")
		if t.Thinking && t.NoThinking {
			w.special("<think>")
			w.text("\n\n")
			w.special("</think>")
			w.text("\n\n")
		}
	}
}

// lastQuestion is the place of the last user's message.
func lastQuestion(chat []engines.Message) int {
	for i, m := range slices.Backward(chat) {
		if m.Role == "user" {
			return i
		}
	}
	return len(chat) - 1
}

// answer is an earlier answer as Qwen 3 writes it.
func (t Template) answer(content string, earlier bool) string {
	i := strings.LastIndex(content, "</think>")
	if i < 0 || !earlier {
		return content
	}
	return strings.TrimLeft(content[i+len("</think>"):], "\n")
}

func (t Template) llama3(w *writer, chat []engines.Message, answer bool) {
	turn := func(role, content string) {
		w.special("<|start_header_id|>")
		w.text(role)
		w.special("<|end_header_id|>")
		w.text("\n\n" + content)
		w.special("<|eot_id|>")
	}
	if len(chat) > 0 || t.Dated {
		w.special("<|begin_of_text|>")
	}
	system, given := t.System, false
	if len(chat) > 0 && chat[0].Role == "system" {
		system, given = strings.TrimSpace(chat[0].Content), true
		chat = chat[1:]
	}
	switch {
	case t.Dated:
		turn("system", dates+system)
	case given || system != "":
		turn("system", system)
	}
	for _, m := range chat {
		turn(string(m.Role), strings.TrimSpace(m.Content))
	}
	if answer {
		w.special("<|start_header_id|>")
		w.text("assistant")
		w.special("<|end_header_id|>")
		w.text("\n\n")
	}
}

func (t Template) zephyr(w *writer, chat []engines.Message, answer bool) {
	turn := func(role, content string) {
		w.text("<|" + role + "|>\n" + content)
		w.special("</s>")
		w.text("\n")
	}
	w.special("<s>")
	if t.System != "" && len(chat) > 0 && chat[0].Role != "system" {
		turn("system", t.System)
	}
	for _, m := range chat {
		turn(string(m.Role), m.Content)
	}
	if answer {
		w.text("<|assistant|>\n")
	}
}

// mistral writes system messages in front of the question that follows, as llama.cpp does: the programs of some versions write
// them in front of the last question, and the beginning of a chat would change with every turn. An answer begins with nothing.
func (t Template) mistral(w *writer, chat []engines.Message) {
	blank := map[bool]string{true: " "}
	system := t.System
	if len(chat) > 0 && chat[0].Role == "system" {
		system = ""
	}
	question := func(content string) {
		w.text(blank[t.Blanks.Question])
		w.special("[INST]")
		w.text(" " + content + blank[t.Blanks.End])
		w.special("[/INST]")
	}
	w.special("<s>")
	for _, m := range chat {
		switch m.Role {
		case "system":
			system = join(system, m.Content)
		case "assistant":
			content := m.Content
			if t.Blanks.Answer { // an answer may have kept the blank that the model wrote
				content = " " + strings.TrimSpace(content)
			}
			w.text(content)
			w.special("</s>")
			w.text(blank[t.Blanks.Turn])
		default:
			question(join(system, m.Content))
			system = ""
		}
	}
	if system != "" {
		question(system)
	}
}

// join puts an empty line between two texts, if neither is empty.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// writer joins ordinary text between special tokens.
type writer struct{ pieces []Piece }

func (w *writer) special(name string) { w.pieces = append(w.pieces, Piece{name, true}) }

func (w *writer) text(s string) {
	if s == "" {
		return
	}
	if n := len(w.pieces); n > 0 && !w.pieces[n-1].Special {
		w.pieces[n-1].Text += s
		return
	}
	w.pieces = append(w.pieces, Piece{Text: s})
}
