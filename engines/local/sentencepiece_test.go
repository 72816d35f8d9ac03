package local_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
)

func TestAModelWithSentencePiece(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tinymodel.Write(path, tinymodel.Options{SentencePiece: true, Seed: 19}); err != nil {
		t.Fatal(err)
	}
	e := open(t, 64, local.Config{Model: path})
	if w := e.Warnings(); len(w) > 0 {
		t.Errorf("warnings %q", w)
	}
	const text = "  the engine keeps\n\tthe order — 你好 😀 "
	if got := e.Detokenize(e.TokenizeBare(text)); got != text {
		t.Errorf("%q came back as %q", text, got)
	}
	if got := e.Tokenize(text); got[0] != 1 || len(got) != e.Count(text)+1 {
		t.Errorf("%d tokens begin with %d, the text alone has %d", len(got), got[0], e.Count(text))
	}
	req := ask("", "which block is kept", 40)
	var pieces strings.Builder
	first, err := e.Generate(t.Context(), req, func(piece string) error {
		pieces.WriteString(piece)
		return nil
	})
	if err != nil || first.Text == "" || pieces.String() != first.Text || first.Usage.OutputTokens != 40 {
		t.Fatalf("the answer is %+v, in pieces %q: %v", first, pieces.String(), err)
	}
	again := generate(t, e, req)
	if again.Text != first.Text || again.Usage.CachedTokens == 0 {
		t.Errorf("asked again, the answer is %+v", again)
	}
	// The chat in tokens gives the same answer, with the space that the model wrote at its beginning.
	continued, err := e.GenerateTokens(t.Context(), req, e.TokenizeChat(req.Messages), nil)
	if err != nil || continued.Text != " "+first.Text {
		t.Errorf("in tokens, the answer is %+v, want %q: %v", continued, first.Text, err)
	}
	req.Messages = append(req.Messages, engines.Message{Role: engines.Assistant, Content: "two"})
	if got := e.Detokenize(e.TokenizeChat(req.Messages)); got != "<s> <|user|>\nwhich block is "+
		"kept</s> \n<|assistant|>\ntwo</s> \n<|assistant|>\n" {
		t.Errorf("the chat is %q", got)
	}
}
