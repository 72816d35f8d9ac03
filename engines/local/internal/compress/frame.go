package compress

import (
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local/internal/chattemplate"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
)

// mark stands for the corpus where a chat is rendered. It comes first, whatever messages have in them.
const mark = "\x00corpus\x00"

// Opening returns the tokens in front of a corpus, which is the system prompt of all chats about it: those that begin a chat, and an
// introduction.
func Opening(file *weights.Model, introduction string) []int32 {
	before, _ := split(file, introduction+mark, nil, false)
	return before
}

// Behind returns the tokens of a chat behind a corpus, with the beginning of the answer: first those that end the system prompt.
func Behind(file *weights.Model, chat []engines.Message) []int32 {
	_, after := split(file, mark, chat, true)
	return after
}

// split returns the tokens before and behind the mark in a system prompt. Text on either side of it is tokenized by itself.
func split(file *weights.Model, system string, chat []engines.Message, answer bool) (before, after []int32) {
	chat = slices.Concat([]engines.Message{{Role: "system", Content: system}}, chat)
	pieces := file.Template.Render(chat, answer)
	for i, p := range pieces {
		if first, rest, ok := strings.Cut(p.Text, mark); ok && !p.Special {
			before = file.Tokens(append(slices.Clone(pieces[:i]), chattemplate.Piece{Text: first}))
			return before, file.Tokens(append([]chattemplate.Piece{{Text: rest}}, pieces[i+1:]...))
		}
	}
	panic("compress: a chat template leaves its system prompt out")
}

// Prompts ask for notes, by the kind of task (CacheNotes, appendix B.1).
var Prompts = map[string]string{
	"qa": "Before I give you the question, imagine you are a student memorizing this material according to the task you " +
		"will have to perform. " +
		"Repeat the context concisely yet comprehensively to aid memorization, preserving all critical details and creating a cheat sheet. " +
		"Once done, I will give you the question.",
	"summary": "Before solving the summarization task, imagine you are a student memorizing this material according to the task. " +
		"Repeat the context concisely yet comprehensively, preserve all key details, and create a cheat sheet. " +
		"Once done, I will prompt you to solve the task.",
	"examples": "Before I give you the new question, imagine you are a student memorizing this material according to the " +
		"task that you will have to perform. " +
		"Reason about the given examples and the expected output, ensuring you preserve all critical details and create a " +
		"cheat sheet covering the entire context. " +
		"Once you have done that, I give you the new question.",
	"counting": "Before solving the counting task, imagine you are a student memorizing this material according to the " +
		"task that you will have to perform. " +
		"Ensure you preserve all critical details to solve the task and create a cheat sheet covering the entire context. " +
		"Once you have done that, I will prompt you to solve the task.",
	"code": "Before solving the code completion task, imagine you are a student memorizing this material according to the " +
		"task that you will have to perform. " +
		"Ensure you preserve all critical details to solve the task and create a cheat sheet covering the entire context. " +
		"Once you have done that, I will prompt you to solve the code completion task.",
}

// Repeat asks for the text itself (KVzip).
const Repeat = "Repeat the previous context exactly."
