package bpe

import "unicode/utf8"

// repair appends raw to dst with U+FFFD in the place of what is no UTF-8: one for every longest piece that could have
// begun a character, as the Unicode standard recommends. The beginning of a character at the very end is returned.
func repair(dst, raw []byte) (text, rest []byte) {
	for len(raw) > 0 {
		r, n := utf8.DecodeRune(raw)
		if r != utf8.RuneError || n > 1 {
			dst, raw = append(dst, raw[:n]...), raw[n:]
			continue
		}
		begun := beginning(raw)
		if begun == len(raw) && begun > 0 {
			return dst, raw
		}
		dst, raw = utf8.AppendRune(dst, utf8.RuneError), raw[max(begun, 1):]
	}
	return dst, nil
}

// end appends what the beginning of a character at the end of a text stands for.
func end(dst, rest []byte) []byte {
	if len(rest) > 0 {
		dst = utf8.AppendRune(dst, utf8.RuneError)
	}
	return dst
}

// beginning returns how many of the first bytes could begin a character that is not complete, 0 for none.
func beginning(raw []byte) int {
	least, most, size := second(raw[0])
	if size == 0 {
		return 0
	}
	n := 1
	for n < len(raw) && n < size-1 && raw[n] >= least && raw[n] <= most {
		least, most = 0x80, 0xbf
		n++
	}
	return n
}

// second returns the range of the byte that may follow a first byte, and the character's size; 0 if none may.
func second(first byte) (least, most byte, size int) {
	switch {
	case first >= 0xc2 && first <= 0xdf:
		return 0x80, 0xbf, 2
	case first == 0xe0:
		return 0xa0, 0xbf, 3
	case first == 0xed:
		return 0x80, 0x9f, 3
	case first >= 0xe1 && first <= 0xef:
		return 0x80, 0xbf, 3
	case first == 0xf0:
		return 0x90, 0xbf, 4
	case first >= 0xf1 && first <= 0xf3:
		return 0x80, 0xbf, 4
	case first == 0xf4:
		return 0x80, 0x8f, 4
	}
	return 0, 0, 0
}
