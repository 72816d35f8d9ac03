package tinymodel

import (
	_ "embed"
	"encoding/json"

	"github.com/ragpilot/ragpilot/engines/local/internal/bpe"
)

// chatML is the chat template of the models: plain ChatML.
const chatML = "{% for message in messages %}" +
	"{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}" +
	"{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

// zephyr is the chat template of models with a vocabulary of SentencePiece, as TinyLlama has it.
const zephyr = "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + eos_token }}\n" +
	"{% elif message['role'] == 'system' %}\n{{ '<|system|>\n' + message['content'] + eos_token }}\n" +
	"{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n{% endif %}\n" +
	"{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}"

// learnt is a vocabulary of SentencePiece. internal/bpe/testdata/make_sentencepiece.py makes it.
//
//go:embed testdata/sentencepiece.json
var learnt []byte

// vocabulary is what a GGUF file has of one, with types as it numbers them.
type vocabulary struct {
	Tokens []string
	Types  []int32
	Scores []float32 // of SentencePiece
	Merges []string  // of bytes
}

// vocabulary returns the model's.
func (o Options) vocabulary() vocabulary {
	if !o.SentencePiece {
		return byteLevel()
	}
	var v vocabulary
	if err := json.Unmarshal(learnt, &v); err != nil {
		panic(err) // the file is part of the program
	}
	return v
}

// tokens is the number of tokens that are bytes; those at the end are unused.
const tokens = 320

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

// byteLevel returns the vocabulary of bytes and merges.
func byteLevel() vocabulary {
	var v vocabulary
	add := func(spelling string, kind int32) {
		v.Tokens, v.Types = append(v.Tokens, spelling), append(v.Types, kind)
	}
	for _, name := range specials {
		add(name, 3)
	}
	for b := range 256 {
		add(bpe.Spell(string([]byte{byte(b)})), 1)
	}
	for _, m := range merges {
		add(bpe.Spell(m[0]+m[1]), 1)
		v.Merges = append(v.Merges, bpe.Spell(m[0])+" "+bpe.Spell(m[1]))
	}
	for len(v.Tokens) < tokens {
		add("[unused"+string(rune('A'+len(v.Tokens)-tokens+30))+"]", 5)
	}
	return v
}
