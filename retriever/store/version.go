package store

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Version returns the version of a text as it is stored: half of its SHA-256, as 32 hexadecimal digits.
func Version(text string) string {
	sum := sha256.Sum256([]byte(ValidText(text)))
	return hex.EncodeToString(sum[:16])
}

// ValidText returns the text as it is stored: each run of invalid UTF-8 becomes U+FFFD.
func ValidText(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
