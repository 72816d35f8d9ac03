package evict

import (
	"regexp"
	"strings"
)

// MaxID is the length in bytes up to which IDs are looked up. Longer ones are no request's.
const MaxID = 512

var (
	engineIDPrefix = regexp.MustCompile(`^(cmpl-|chatcmpl-|batch-)`)
	engineIDSuffix = regexp.MustCompile(`^(req-[^-]+)-[0-9]+-[0-9a-f]+$`)
)

// cut takes off what engines put in front of a request's ID.
func cut(id string) string { return id[len(engineIDPrefix.FindString(id)):] }

// healthCheck reports whether an ID is of an engine's request to itself, or of none.
func healthCheck(id string) bool {
	id = cut(id)
	return id == "" || strings.HasPrefix(id, "HEALTH_CHECK")
}

// Normalize returns the request IDs that engines' IDs stand for, by their form alone: what engines put in front is cut,
// and what they put behind IDs of the form req-X; health checks and empty IDs are left out, repeated ones are listed once,
// in order. Engines put more behind IDs than their form shows; [Match] finds those.
func Normalize(ids []string) []string {
	out := make([]string, 0, len(ids))
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if healthCheck(id) {
			continue
		}
		id = cut(id)
		if m := engineIDSuffix.FindStringSubmatch(id); m != nil {
			id = m[1]
		}
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// Match returns the known ID that an engine's ID stands for: the ID itself, else the ID without what engines put in front
// (cmpl-, chatcmpl-, batch-), else the longest known ID that one of these begins with, followed by '-': vLLM appends
// "-<number>-<8 hex>" to completions and "-<8 hex>" to chats, which users' IDs may end with as well. It asks known at most
// twice for each '-' in the ID.
func Match(id string, known func(id string) bool) (string, bool) {
	if len(id) > MaxID || healthCheck(id) {
		return "", false
	}
	bare := cut(id)
	for _, whole := range [2]string{id, bare} {
		if known(whole) {
			return whole, true
		}
	}
	for _, whole := range [2]string{bare, id} {
		for end := strings.LastIndexByte(whole, '-'); end > 0; end = strings.LastIndexByte(whole[:end], '-') {
			if known(whole[:end]) {
				return whole[:end], true
			}
		}
	}
	return "", false
}
