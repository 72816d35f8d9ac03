package citation

import "strings"

// read returns the citations of a bracket that begins at byte start of the answer.
func (f *Filter) read(bracket string, start int) (cited []Citation) {
	from, to := 1, len(bracket)-1
	if bracket[0] == '<' {
		from = len(tag)
		if from > to {
			return nil
		}
		if i := strings.Index(bracket[:to], " fence="); i >= from {
			to = i
		}
		if c, ok := f.cite(bracket, from, to, start); ok {
			return []Citation{c}
		}
		return nil
	}
	for from < to {
		from = skip(bracket, from, to)
		end := f.longest(bracket, from, to, start, &cited)
		if end < 0 { // not a label: go on behind the next separator
			end = nextSeparator(bracket, from, to)
		}
		from = end + 1
	}
	return cited
}

// longest cites the longest label that begins at from and ends at a separator or at the end; −1: there is none.
func (f *Filter) longest(bracket string, from, to, start int, cited *[]Citation) (end int) {
	for end = min(to, from+maxLabel+len(" ")); end > from; end-- {
		if end < to && !separates(bracket[end]) {
			continue
		}
		if c, ok := f.cite(bracket, from, end, start); ok {
			*cited = append(*cited, c)
			return end
		}
	}
	return -1
}

// cite resolves bracket[from:to], without spaces at its ends.
func (f *Filter) cite(bracket string, from, to, start int) (Citation, bool) {
	for to > from && bracket[to-1] == ' ' {
		to--
	}
	if to-from == 0 || to-from > maxLabel {
		return Citation{}, false
	}
	source, ok := f.to.Resolve(bracket[from:to])
	return Citation{Source: source, Start: start + from, End: start + to}, ok
}

// skip returns where a label may begin at from or behind it: spaces and the word of the markup are passed over.
func skip(bracket string, from, to int) int {
	for {
		switch {
		case from < to && bracket[from] == ' ':
			from++
		case strings.HasPrefix(bracket[from:to], "doc "):
			from += len("doc ")
		default:
			return from
		}
	}
}

func separates(c byte) bool { return c == ',' || c == ';' }

func nextSeparator(bracket string, from, to int) int {
	for ; from < to; from++ {
		if separates(bracket[from]) {
			return from
		}
	}
	return to
}
