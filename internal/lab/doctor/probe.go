package doctor

import (
	"fmt"
	"strings"
)

// probeText is a text of at least size bytes that no cache has, because it begins with nonce. Its lines differ, so that no
// part of it is like another.
func probeText(nonce string, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s begins a text of ragpilot doctor. It is made up and means nothing.\n", nonce)
	for i := 1; b.Len() < size; i++ {
		fmt.Fprintf(&b, "Note %d: harbour %d has %d boats, of which %d are at sea.\n", i, i*7%101, i*13%89+20, i*3%19)
	}
	return b.String()
}

// varied is a text that begins with the first three quarters of another one and goes on otherwise.
func varied(text, nonce string) string {
	keep := len(text) * 3 / 4
	if end := strings.LastIndexByte(text[:keep], '\n'); end > 0 {
		keep = end + 1
	}
	return text[:keep] + probeText(nonce, len(text)-keep)
}
