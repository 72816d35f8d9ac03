package bpe

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Splitter cuts a text into the words that merges do not cross. The families of models differ in it. What is a letter or
// a number is what Go's Unicode version says; characters that are newer may be split otherwise by the reference.
type Splitter uint8

// The splitters. In words, "space" is any Unicode white space, "mark" what is neither space nor letter nor number.
const (
	// GPT2: contractions; letters, numbers or marks, each with a blank before them; space.
	GPT2 Splitter = iota + 1
	// SmolLM: every number character by itself first, then what lies between as GPT2.
	SmolLM
	// Llama3: contractions in either case; letters with one mark or space before them; up to three numbers; marks with a
	// blank before and line ends behind; space, with its line ends together.
	Llama3
	// Qwen2: as Llama3, but every number character by itself.
	Qwen2
)

// words calls yield with the words of a valid UTF-8 text, in order; together they are the text. It takes linear time.
func (s Splitter) words(text string, yield func(word string)) {
	switch s {
	case SmolLM:
		for len(text) > 0 {
			if r, n := utf8.DecodeRuneInString(text); unicode.IsNumber(r) {
				yield(text[:n])
				text = text[n:]
				continue
			}
			end := strings.IndexFunc(text, unicode.IsNumber)
			if end < 0 {
				end = len(text)
			}
			each(text[:end], nextGPT2, yield)
			text = text[end:]
		}
	case Llama3:
		each(text, func(s string) int { return nextLlama3(s, 3) }, yield)
	case Qwen2:
		each(text, func(s string) int { return nextLlama3(s, 1) }, yield)
	default:
		each(text, nextGPT2, yield)
	}
}

func each(text string, next func(string) int, yield func(string)) {
	for len(text) > 0 {
		n := next(text)
		yield(text[:n])
		text = text[n:]
	}
}

func isSpace(r rune) bool { return unicode.Is(unicode.White_Space, r) }
func isMark(r rune) bool  { return !isSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r) }
func isBreak(r rune) bool { return r == '\r' || r == '\n' }

// run returns the length of the characters at the beginning of s that are in a class, at most limit of them (0: all).
func run(s string, in func(rune) bool, limit int) int {
	count := 0
	for i, r := range s {
		if !in(r) || limit > 0 && count == limit {
			return i
		}
		count++
	}
	return len(s)
}

// nextGPT2 returns the length of the first word. In the notation of regular expressions:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func nextGPT2(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	blank := 0
	if s[0] == ' ' {
		blank = 1
	}
	r, _ := utf8.DecodeRuneInString(s[blank:])
	switch {
	case blank == len(s) || isSpace(r):
		return spaces(s)
	case unicode.IsLetter(r):
		return blank + run(s[blank:], unicode.IsLetter, 0)
	case unicode.IsNumber(r):
		return blank + run(s[blank:], unicode.IsNumber, 0)
	}
	return blank + run(s[blank:], isMark, 0)
}

// nextLlama3 returns the length of the first word, with at most that many numbers in one. In the notation of regular
// expressions, for three:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func nextLlama3(s string, numbers int) int {
	if n := contraction(s, true); n > 0 {
		return n
	}
	first, size := utf8.DecodeRuneInString(s)
	switch {
	case unicode.IsLetter(first):
		return run(s, unicode.IsLetter, 0)
	case unicode.IsNumber(first):
		return run(s, unicode.IsNumber, numbers)
	case !isBreak(first):
		if letters := run(s[size:], unicode.IsLetter, 0); letters > 0 {
			return size + letters
		}
	}
	blank := 0
	if first == ' ' {
		blank = 1
	}
	if marks := run(s[blank:], isMark, 0); marks > 0 {
		n := blank + marks
		return n + run(s[n:], isBreak, 0)
	}
	if n := strings.LastIndexAny(s[:run(s, isSpace, 0)], "\r\n"); n >= 0 {
		return n + 1
	}
	return spaces(s)
}

// spaces is the length of the space at the beginning of s, without its last character if more follows and another
// remains: that one belongs to the next word.
func spaces(s string) int {
	n := run(s, isSpace, 0)
	if n == len(s) {
		return n
	}
	if _, last := utf8.DecodeLastRuneInString(s[:n]); last < n {
		return n - last
	}
	return n
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the beginning of s, or 0. If either case will
// do, so does the long s (U+017F), whose capital is S.
func contraction(s string, fold bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	if fold && strings.HasPrefix(s[1:], "ſ") {
		return 1 + len("ſ")
	}
	if strings.IndexByte("stmd", lower(s[1], fold)) >= 0 {
		return 2
	}
	if len(s) < 3 {
		return 0
	}
	switch string([]byte{lower(s[1], fold), lower(s[2], fold)}) {
	case "re", "ve", "ll":
		return 3
	}
	return 0
}

func lower(b byte, fold bool) byte {
	if fold && b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
