package conversation

import (
	"github.com/ragpilot/ragpilot/internal/prompt/extract"
	"github.com/ragpilot/ragpilot/internal/prompt/notes"
)

// fence fences what others wrote in the form of our notes: in results, of which several may make one note together, and in the documents
// of a system text.
func fence(texts []Text, form extract.Options) {
	var parts []string
	for i := range texts {
		switch tx := &texts[i]; {
		case tx.Fixed:
		case tx.Opaque:
			tx.Value = notes.Fence(tx.Value)
		case tx.Role == Tool:
			parts = append(parts, tx.Value)
		case tx.Role == System:
			tx.Value = fencedSystem(tx.Value, form)
		}
	}
	parts = notes.FenceParts(parts)
	for i := range texts {
		if tx := &texts[i]; tx.Role == Tool && !tx.Opaque && !tx.Fixed {
			tx.Value, parts = parts[0], parts[1:]
		}
	}
}

// fencedSystem fences the documents of a system text. Where it is not sure which these are, all that follows the first mark of
// one counts: a document could be written so that there is doubt.
func fencedSystem(value string, form extract.Options) string {
	if notes.Fence(value) == value {
		return value
	}
	if found, ok := extract.Find(value, form); ok {
		return notes.FenceWhere(value, found.Inside)
	}
	if mark := extract.Mark(value); mark >= 0 {
		return notes.FenceWhere(value, func(at int) bool { return at >= mark })
	}
	return value
}
