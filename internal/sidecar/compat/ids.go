package compat

import (
	"crypto/rand"
	"encoding/hex"
)

// maxTrackedID is the length of an ID from traffic up to which it is remembered.
const maxTrackedID = 512

// NewRequestID returns a new ID of a request: req- and 12 hexadecimal digits.
func NewRequestID() string { return randomID("req-", 6) }

func randomID(prefix string, n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return prefix + hex.EncodeToString(b)
}
