package eval_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
)

// fakeReader is a scripted model: it looks for the sentence that the row's question asks for, in the documents of the last
// message up to place sight, and in the messages before it. It stands for a model that overlooks what comes late.
type fakeReader struct {
	sight int
	fail  func(call int) error // nil: never

	mu    sync.Mutex
	calls int
	asked map[string]int // prompt → calls
}

func (f *fakeReader) Name() string { return "fake reader" }

func (f *fakeReader) Generate(ctx context.Context, req engines.Request, maxTokens int) (string, error) {
	messages := req.Messages
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.fail != nil {
		if err := f.fail(f.calls); err != nil {
			return "", err
		}
	}
	if maxTokens < 1 {
		return "", errors.New("no tokens")
	}
	if f.asked == nil {
		f.asked = map[string]int{}
	}
	f.asked[chat(messages)]++
	return f.answer(messages), ctx.Err()
}

func chat(messages []engines.Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(string(m.Role) + "\n" + m.Content + "\n")
	}
	return b.String()
}

func (f *fakeReader) answer(messages []engines.Message) string {
	last := messages[len(messages)-1].Content
	docs := strings.SplitAfter(last, "</doc>\n")
	asked := last[strings.LastIndex(last, " is the ")+len(" is the "):]
	asked, _, _ = strings.Cut(asked, "?")
	seen := strings.Join(docs[:min(f.sight, len(docs))], "")
	for _, m := range messages[:len(messages)-1] {
		if m.Role == engines.User {
			seen += m.Content
		}
	}
	if _, fact, ok := strings.Cut(seen, "The "+asked+" is "); ok {
		value, _, _ := strings.Cut(fact, ".")
		return "The " + asked + " is " + value + "."
	}
	return "I do not know."
}

// fakeTeller is a fakeReader that knows how likely answers are: e⁻¹ a token if it reads the answer, e⁻³ otherwise, of a
// vocabulary of two.
type fakeTeller struct{ fakeReader }

func (f *fakeTeller) likelihood(messages []engines.Message, forced eval.Forced) float64 {
	if strings.Contains(f.answer(messages), " is "+forced.Answer+".") {
		return math.Exp(-1)
	}
	return math.Exp(-3)
}

func (f *fakeTeller) Score(_ context.Context, req engines.Request, forced eval.Forced) ([]float64, error) {
	messages := req.Messages
	x := math.Log(f.likelihood(messages, forced))
	return []float64{x, x}, nil
}

func (f *fakeTeller) Distribution(_ context.Context, req engines.Request, forced eval.Forced) (answer []float64, all [][]float32,
	err error,
) {
	messages := req.Messages
	p := f.likelihood(messages, forced)
	line := []float32{float32(math.Log(p)), float32(math.Log(1 - p))}
	return nil, [][]float32{line, line}, nil
}
