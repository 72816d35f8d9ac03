package bpe

import "fmt"

// MergeBoth merges a word in the way of short words and in that of long ones.
func MergeBoth(t *Tokenizer, word string) (short, long []int32) {
	var a, b scratch
	for i := range len(word) {
		a.ids = append(a.ids, t.bytes[word[i]])
	}
	b.ids = append(b.ids, a.ids...)
	a.mergeShort(t.merges)
	b.mergeLong(t.merges)
	return a.ids, b.ids
}

// Words returns how a splitter cuts a text.
func Words(s Splitter, text string) []string {
	var words []string
	s.words(text, func(w string) { words = append(words, w) })
	return words
}

// Repair returns a text with what is no UTF-8 replaced.
func Repair(raw string) string {
	text, rest := repair([]byte(raw))
	return text + end(rest)
}

// String returns the splitter's name in GGUF files.
func (s Splitter) String() string {
	switch s {
	case GPT2:
		return "gpt-2"
	case SmolLM:
		return "smollm"
	case Llama3:
		return "llama-bpe"
	case Qwen2:
		return "qwen2"
	}
	return fmt.Sprintf("Splitter(%d)", uint8(s))
}
