package langchain

import (
	"context"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

type blocksKey struct{}

// withBlocks keeps how a plan's blocks are written, for [Model].
func withBlocks(ctx context.Context, plan *contextpilot.Plan) context.Context {
	text, spans := plan.Context(), plan.Spans()
	blocks := make([]string, len(spans))
	for i, s := range spans {
		blocks[i] = text[s[0]:s[1]]
	}
	return context.WithValue(ctx, blocksKey{}, blocks)
}

// blockSpans finds a plan's blocks in the last message, where they stand in order. Those that do not are left out.
func blockSpans(ctx context.Context, messages []engines.Message) (spans []engines.BlockSpan) {
	blocks, _ := ctx.Value(blocksKey{}).([]string)
	at := 0
	for _, b := range blocks {
		last := len(messages) - 1
		i := strings.Index(messages[last].Content[at:], b)
		if i < 0 {
			continue
		}
		spans = append(spans, engines.BlockSpan{Message: last, From: at + i, To: at + i + len(b)})
		at += i + len(b)
	}
	return spans
}
