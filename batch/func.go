package batch

import (
	"cmp"
	"context"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// funcEngine is an engine that answers by a function.
type funcEngine struct {
	name   string
	answer func(ctx context.Context, prompt string) (string, error)
}

// Func returns an engine that answers by a function, such as a chain of a framework. The function gets the text of the user's message,
// and is called by several goroutines at a time. Its error is tried again unless it wraps [engines.ErrRefused]; while every call
// fails, the function counts as an engine that is away, and is called again until ctx ends. No tokens are reported.
func Func(name string, answer func(ctx context.Context, prompt string) (string, error)) engines.Engine {
	return &funcEngine{cmp.Or(name, "func"), answer}
}

// Name implements [engines.Engine].
func (f *funcEngine) Name() string { return f.name }

// Generate implements [engines.Engine].
func (f *funcEngine) Generate(ctx context.Context, r engines.Request, onText func(string) error) (engines.Response, error) {
	start := time.Now()
	text, err := f.answer(ctx, r.Messages[len(r.Messages)-1].Content)
	if err == nil && onText != nil {
		err = onText(text)
	}
	took := time.Since(start)
	return engines.Response{ID: r.ID, Text: text, Finish: "stop", TTFT: took, Total: took}, err
}

// Subscribe implements [engines.Engine]. Nothing is reported.
func (f *funcEngine) Subscribe(func(...contextpilot.Event)) (cancel func()) { return func() {} }
