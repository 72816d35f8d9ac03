package httpapi

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"strings"
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

var (
	engineIDPrefix = regexp.MustCompile(`^(cmpl-|chatcmpl-|batch-)`)
	engineIDSuffix = regexp.MustCompile(`^(req-[^-]+)-[0-9]+-[0-9a-f]+$`)
)

// NormalizeIDs returns the requests' IDs that engines' IDs stand for: what engines put before and behind is cut, health
// checks and empty IDs are left out, repeated ones are told once, in order.
func NormalizeIDs(ids []string) []string {
	out := make([]string, 0, len(ids))
	seen := map[string]bool{}
	for _, id := range ids {
		id = id[len(engineIDPrefix.FindString(id)):]
		if m := engineIDSuffix.FindStringSubmatch(id); m != nil {
			id = m[1]
		}
		if id == "" || strings.HasPrefix(id, "HEALTH_CHECK") || seen[id] {
			continue
		}
		seen[id] = true
		out = append(out, id)
	}
	return out
}
