package memory

import (
	"embed"
	"strings"
)

//go:embed prompts
var promptFiles embed.FS

// The prompts. Each is the same in every call and comes first, so that an engine computes it once; what changes follows in
// the user message, what changes least in front.
var factsPrompt, reconcilePrompt, addOnlyPrompt = promptOf("facts"), promptOf("reconcile"), promptOf("add_only")

func promptOf(name string) string {
	raw, err := promptFiles.ReadFile("prompts/" + name + ".txt")
	if err != nil {
		panic("memory: " + err.Error()) // they are compiled in
	}
	return strings.TrimSpace(string(raw))
}

// sections writes pairs of title and text; those without text are left out.
func sections(pairs ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		text := strings.TrimSpace(pairs[i+1])
		if text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString("## " + pairs[i] + "\n" + text)
	}
	return b.String()
}

// transcript writes messages as lines "role: text", without system messages and without those that have no text.
func transcript(messages []Message) string {
	var b strings.Builder
	for _, m := range messages {
		text := strings.TrimSpace(m.Content)
		if m.Role == System || text == "" {
			continue
		}
		b.WriteString(string(m.Role))
		if m.Name != "" {
			b.WriteString(" (" + oneLine(m.Name) + ")")
		}
		b.WriteString(": " + text + "\n")
	}
	return b.String()
}

// oneLine keeps a text from looking like several entries of a list.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
