package compress_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local/internal/chattemplate"
	"github.com/ragpilot/ragpilot/engines/local/internal/compress"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
)

// TestFrame: with a corpus between them, what stands in front of it and what stands behind it are one chat.
func TestFrame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tinymodel.Write(path, tinymodel.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	file, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, template := range []chattemplate.Template{
		{}, {System: "Default."}, {Family: chattemplate.Llama3, Dated: true}, {Family: chattemplate.Llama3}, {Family: chattemplate.Zephyr}, {Family: chattemplate.Mistral},
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
