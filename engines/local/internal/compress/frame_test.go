package compress_test

import (
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local/internal/chattemplate"
	"github.com/ragpilot/ragpilot/engines/local/internal/compress"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
)

// TestFrame: with a corpus between them, what stands in front of it and what stands behind it are one chat.
func TestFrame(t *testing.T) {
	file, _ := modeltest.Tiny(t, tinymodel.Options{Seed: 1})
	for _, template := range []chattemplate.Template{
		{},
		{System: "Default."},
		{Family: chattemplate.Llama3, Dated: true},
		{Family: chattemplate.Llama3},
		{Family: chattemplate.Zephyr},
		{Family: chattemplate.Mistral},
	} {
		file.Template = template
		const corpus = "<corpus>"
		turns := []engines.Message{{Role: "user", Content: "One?"}, {Role: "assistant", Content: "Two."}, {Role: "user", Content: "Three?"}}
		whole := append([]engines.Message{{Role: "system", Content: "Read.\n\n" + corpus}}, turns...)
		want := file.Tokenizer.Decode(file.Chat(whole, true), true)
		got := slices.Concat(compress.Opening(file, "Read.\n\n"), file.Tokenizer.Encode(corpus, false), compress.Behind(file, turns))
		if text := file.Tokenizer.Decode(got, true); text != want {
			t.Errorf("%+v: %q, want %q", template, text, want)
		}
	}
}
