package memory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// clean returns a text that every backend can store: UTF-8 without zero bytes, and without space around it.
func clean(text string) string {
	return strings.TrimSpace(readable(text))
}

// readable replaces what is not UTF-8 and drops zero bytes.
func readable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

func cleanMessages(messages []Message) []Message {
	out := make([]Message, len(messages))
	for i, m := range messages {
		out[i] = Message{Role: Role(readable(string(m.Role))), Content: readable(m.Content), Name: readable(m.Name), Extra: m.Extra}
	}
	return out
}

// cleanMetadata returns a copy as encoding/json would decode it.
func cleanMetadata(metadata map[string]any) (map[string]any, error) {
	if len(metadata) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("%w: metadata: %w", ErrInvalid, err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("%w: metadata: %w", ErrInvalid, err)
	}
	return out, nil
}

// sortByAge puts the oldest first, then by ID.
func sortByAge(all []Memory) {
	slices.SortFunc(all, func(a, b Memory) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
}
