package bpe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/bpe"
)

// Words are those of the reference: ids alone do not show where a text is cut if no merge would cross.
func TestWordsAsTheReference(t *testing.T) {
	var all map[string][][]string
	read(t, "words.golden.json", &all)
	for _, split := range []bpe.Splitter{bpe.GPT2, bpe.SmolLM, bpe.Llama3, bpe.Qwen2} {
		list := all[split.String()]
		if len(list) == 0 {
			t.Errorf("no golden words of %v", split)
		}
		for _, want := range list {
			if got := bpe.Words(split, strings.Join(want, "")); !slices.Equal(got, want) {
				t.Errorf("%v: %q, want %q", split, got, want)
			}
		}
	}
}

// One U+FFFD for every longest beginning of a character, and one for every other byte.
func TestBrokenBytes(t *testing.T) {
	for raw, want := range map[string]string{
		"\xe0\x80\x80":         "\ufffd\ufffd\ufffd",
		"\xed\xa0\x80x":        "\ufffd\ufffd\ufffdx",
		"\xf0\x80\x80\x80":     "\ufffd\ufffd\ufffd\ufffd",
		"\xf4\x90\x80\x80":     "\ufffd\ufffd\ufffd\ufffd",
		"\xe2\x82":             "\ufffd",
		"\xe2\x82\xe2\x82\xac": "\ufffd€",
		"\xf0\x9f\x98a":        "\ufffda",
		"\xc3(":                "\ufffd(",
		"\xf1\x80\x80\xc2":     "\ufffd\ufffd",
		"\ufffd\xff":           "\ufffd\ufffd",
	} {
		if got := bpe.Repair(raw); got != want {
			t.Errorf("%q is %q, want %q", raw, got, want)
		}
	}
}

// With the vocabularies of Llama 3, a word that is a token is that token even if no merges lead there.
func TestWholeWords(t *testing.T) {
	v := small(t)
	v.add("zqzq", 0, 1)
	for split, want := range map[string]int{"llama-bpe": 1, "gpt-2": 4, "smollm": 4, "qwen2": 4} {
		if ids := v.byteLevel(t, split).Encode("zqzq", false); len(ids) != want {
			t.Errorf("%s: %v, want %d tokens", split, ids, want)
		}
	}
}
