package chunk

import (
	"bytes"
	"errors"
	"strings"
)

// ErrBinary says that a file is no text: it holds a NUL byte (UTF-16 files do, too).
var ErrBinary = errors.New("not a text file: it holds a NUL byte")

// Normalize turns the bytes of a file into the text that [Markdown] and [Plain] expect: valid UTF-8 with line
// feeds and no byte order mark. A run of invalid bytes becomes one U+FFFD. The only error is [ErrBinary].
func Normalize(raw []byte) (string, error) {
	if bytes.IndexByte(raw, 0) >= 0 {
		return "", ErrBinary
	}
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	if strings.IndexByte(text, '\r') >= 0 {
		text = strings.ReplaceAll(text, "\r\n", "\n")
		text = strings.ReplaceAll(text, "\r", "\n")
	}
	return text, nil
}
