package openai_test

import (
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/engines/openai"
)

// Each chunk is handed on as it came and before its text, in a stream and in a whole answer; [DONE] is none.
func TestChunks(t *testing.T) {
	whole := `{"choices":[{"message":{"content":"Because."},"finish_reason":"stop"}],"__verbose":{"id_slot":1}}`
	for name, test := range map[string]struct {
		answer script
		want   []string
	}{
		"stream": {
			streams(piece("Be"), piece("cause."), stop, usage),
			[]string{piece("Be"), "text Be", piece("cause."), "text cause.", stop, usage},
		},
		"whole": {answers(200, "application/json", whole), []string{whole, "text Because."}},
	} {
		t.Run(name, func(t *testing.T) {
			_, engine := startFake(t, test.answer, nil)
			var got []string
			ctx := openai.WithChunks(t.Context(), func(data []byte) { got = append(got, string(data)) })
			_, err := engine.Generate(ctx, question("q"), func(piece string) error {
				got = append(got, "text "+piece)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
