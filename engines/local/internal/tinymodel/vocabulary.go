package tinymodel

import "github.com/ragpilot/ragpilot/engines/local/internal/bpe"

// Template is the chat template of the models: plain ChatML.
const Template = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}" +
	"{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

// vocabulary is the number of tokens; those at the end are unused.
const vocabulary = 320

// The special tokens are ids 0 to 2; the first and the last end an answer.
var specials = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}

// merges that English text has many of, in this order.
var merges = [][2]string{
	{" ", "t"},
	{"h", "e"},
	{" t", "he"},
	{"i", "n"},
	{"r", "e"},
	{"o", "n"},
	{"e", "r"},
	{" ", "a"},
	{"a", "t"},
	{" ", "s"},
	{"e", "n"},
	{" ", "o"},
	{" ", "c"},
	{"e", "s"},
	{" ", "w"},
	{"n", "d"},
	{"i", "t"},
	{"o", "r"},
	{"i", "s"},
	{"a", "l"},
	{" ", "p"},
	{"in", "g"},
	{" ", "f"},
	{"a", "n"},
	{"e", "d"},
	{" ", "b"},
	{"o", "u"},
	{"a", "r"},
	{" ", "in"},
	{" o", "f"},
	{" a", "nd"},
	{"i", "c"},
	{" t", "o"},
	{" ", "m"},
	{" ", "d"},
	{"l", "e"},
	{"i", "on"},
	{" ", "h"},
	{"c", "h"},
	{"a", "s"},
}

// tokens returns the spellings of all ids, their types as GGUF numbers them, and the merges.
func tokens() (spellings []string, types []int32, pairs []string) {
	for _, name := range specials {
		spellings, types = append(spellings, name), append(types, 3)
	}
	add := func(text string) { spellings, types = append(spellings, bpe.Spell(text)), append(types, 1) }
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	for _, m := range merges {
		add(m[0] + m[1])
		pairs = append(pairs, bpe.Spell(m[0])+" "+bpe.Spell(m[1]))
	}
	for len(spellings) < vocabulary {
		spellings, types = append(spellings, "[unused"+string(rune('A'+len(spellings)-vocabulary+30))+"]"), append(types, 5)
	}
	return spellings, types, pairs
}
