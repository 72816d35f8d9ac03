package chunk

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// abbreviations end in a full stop that ends no sentence. The list is short on purpose: a miss only moves a
// cut, it never loses text.
var abbreviations = map[string]bool{
	"al": true, "approx": true, "cf": true, "dr": true, "e.g": true, "eq": true, "etc": true, "fig": true,
	"i.e": true, "mr": true, "mrs": true, "ms": true, "no": true, "prof": true, "sec": true, "st": true, "vs": true,
}

// sentenceEnd returns where the sentence that begins at start ends, at most end. Trailing white space is not
// part of the sentence. A new list item, table row or quotation begins a sentence, too.
func sentenceEnd(src string, start, end int) int {
	for i := start; i < end; {
		r, n := utf8.DecodeRuneInString(src[i:end])
		switch r {
		case '\n':
			if i > start && startsItem(strings.TrimLeft(src[i+1:end], " \t")) {
				return trimEnd(src, start, i)
			}
		case '。', '！', '？':
			return skipClosers(src, i+n, end)
		case '.', '!', '?':
			stop := skipClosers(src, i+n, end)
			if stop == end || endsSentence(src, start, i, stop, end) {
				return stop
			}
			i = stop
			continue
		}
		i += n
	}
	return trimEnd(src, start, end)
}

// endsSentence decides whether the mark at i, followed by closing quotes up to stop, ends a sentence.
func endsSentence(src string, start, i, stop, end int) bool {
	next, _ := utf8.DecodeRuneInString(src[stop:end])
	if !unicode.IsSpace(next) {
		return false // 3.14, example.com, file.go
	}
	after := strings.TrimLeftFunc(src[stop:end], unicode.IsSpace)
	if r, _ := utf8.DecodeRuneInString(after); unicode.IsLower(r) {
		return false
	}
	if src[i] != '.' {
		return true
	}
	word := src[max(start, i-16):i] // longer than any abbreviation
	if k := strings.LastIndexFunc(word, func(r rune) bool { return unicode.IsSpace(r) || r == '(' }); k >= 0 {
		word = word[k+1:]
	}
	initial := utf8.RuneCountInString(word) == 1 && unicode.IsUpper([]rune(word)[0])
	number := word != "" && strings.Trim(word, "0123456789") == "" && // "1. First": a list number, not an end
		strings.TrimLeft(src[lineStart(src, start, i):i], " \t") == word
	return !initial && !number && !abbreviations[strings.ToLower(word)]
}

// skipClosers returns the position behind further end marks, quotes and brackets that belong to the sentence.
func skipClosers(src string, i, end int) int {
	for i < end {
		r, n := utf8.DecodeRuneInString(src[i:end])
		if !strings.ContainsRune(".!?。！？)]}\"'”’»*_`", r) {
			break
		}
		i += n
	}
	return i
}

// startsItem reports whether a line begins a list item, quotation or table row.
func startsItem(line string) bool {
	if line == "" {
		return false
	}
	switch line[0] {
	case '|', '>':
		return true
	case '-', '*', '+':
		return len(line) > 1 && line[1] == ' '
	}
	rest := strings.TrimLeft(line, "0123456789")
	return len(rest) < len(line) && (strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, ") "))
}

func lineStart(src string, start, i int) int {
	if k := strings.LastIndexByte(src[start:i], '\n'); k >= 0 {
		return start + k + 1
	}
	return start
}

// trimEnd returns end without the white space before it, but not below start.
func trimEnd(src string, start, end int) int {
	return start + len(strings.TrimRightFunc(src[start:end], unicode.IsSpace))
}
