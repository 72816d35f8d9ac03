package local_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/enginetest"
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
)

func TestConformance(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) engines.Engine { return open(t, 200, local.Config{}) })
}

func TestUsageAndFinish(t *testing.T) {
	now := time.Unix(0, 0)
	e := open(t, 100, local.Config{Now: func() time.Time { now = now.Add(time.Second); return now }})
	req := ask("", text(1, 100), 20)
	prompt := len(e.TokenizeChat(req.Messages))
	for _, cached := range []int{0, (prompt - 1) / 16 * 16} {
		r := generate(t, e, req)
		if want := (engines.Usage{PromptTokens: prompt, OutputTokens: 20, CachedTokens: cached, CachedKnown: true}); r.Usage != want {
			t.Errorf("usage %+v, want %+v", r.Usage, want)
		}
		if r.Finish != "length" || r.TTFT != time.Second || r.Total != 2*time.Second {
			t.Errorf("finish %q, times %v and %v", r.Finish, r.TTFT, r.Total)
		}
	}
	if n := e.Prefix(e.TokenizeChat(req.Messages), ""); n != (prompt-1)/16*16 {
		t.Errorf("prefix of %d tokens, of a prompt of %d", n, prompt)
	}
	e.Clear()
	if n := e.Prefix(e.TokenizeChat(req.Messages), ""); n != 0 {
		t.Errorf("prefix of %d tokens in an empty cache", n)
	}
}

// An answer's tokens are cached too, but for the last, which was not computed.
func TestAnswerIsCached(t *testing.T) {
	e := open(t, 100, local.Config{})
	prompt := e.Tokenize(text(1, 100))
	for _, want := range []int{0, (len(prompt) - 1) / 16 * 16} {
		r, err := e.GenerateTokens(t.Context(), engines.Request{MaxTokens: 40, Extra: extra("ignore_eos", true)}, prompt, nil)
		if err != nil || r.Usage.CachedTokens != want {
			t.Errorf("%+v, error %v, want %d tokens cached", r, err, want)
		}
	}
	if n, want := e.Stats().CachedBlocks, (len(prompt)+39)/16; n != want {
		t.Errorf("%d blocks of %d tokens and twice the same answer of 40 are cached, want %d", n, len(prompt), want)
	}
}

// Prompts that are the same and in flight at the same time are computed once.
func TestTogetherIsOnce(t *testing.T) {
	e := open(t, 200, local.Config{Step: 32})
	req := ask("", text(3, 300), 4)
	prompt := len(e.TokenizeChat(req.Messages))
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := e.Generate(context.Background(), req, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	own := prompt - (prompt-1)/16*16 // the last block's tokens
	if s := e.Stats(); s.PromptTokens != int64(prompt+7*own) || s.HitTokens != int64(7*(prompt-own)) || s.QueriedTokens != int64(8*prompt) {
		t.Errorf("8 times %d tokens: %+v", prompt, s)
	}
}

func TestSaltsShareNothing(t *testing.T) {
	e := open(t, 200, local.Config{})
	req := ask("", text(3, 100), 2)
	prompt := e.TokenizeChat(req.Messages)
	for _, salt := range []string{"", "a", "b"} {
		if n := e.Prefix(prompt, salt); n != 0 {
			t.Errorf("%d tokens are there before the first request with salt %q", n, salt)
		}
		req.Extra["cache_salt"] = extra("", salt)[""]
		if r := generate(t, e, req); r.Usage.CachedTokens != 0 {
			t.Errorf("salt %q found %d tokens", salt, r.Usage.CachedTokens)
		}
	}
}

// If the cache is too small for all requests that run, those that came last are computed again, and no client notices.
func TestPreemption(t *testing.T) {
	path := tiny(t)
	requests := make([]engines.Request, 6)
	for i := range requests {
		requests[i] = ask("", text(i, 60), 100)
		if i%2 == 1 { // what is drawn does not depend on it either
			requests[i].Extra = extra("ignore_eos", true, "temperature", 1.5, "top_p", .9, "seed", i)
		}
	}
	alone := open(t, 200, local.Config{Model: path})
	small := open(t, 20, local.Config{Model: path, Step: 32})
	for round := 0; round == 0 || round < 20 && small.Stats().Preemptions == 0; round++ { // the requests may come one after the other
		answers := make([]engines.Response, len(requests))
		var wait sync.WaitGroup
		for i, req := range requests {
			wait.Go(func() { answers[i] = generate(t, small, req) })
		}
		wait.Wait()
		for i, req := range requests {
			want := generate(t, alone, req)
			if answers[i].Text != want.Text || answers[i].Usage.OutputTokens != 100 || answers[i].Usage.PromptTokens != want.Usage.PromptTokens {
				t.Errorf("request %d: %+v, alone %+v", i, answers[i], want)
			}
		}
	}
	if s := small.Stats(); s.Preemptions == 0 {
		t.Errorf("nothing was preempted: %+v", s)
	}
	idle(t, small)
}

// A request that is cancelled gives its blocks back, whether it waits, reads its prompt or answers.
func TestCancel(t *testing.T) {
	e := open(t, 30, local.Config{Running: 2, Step: 16})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wait sync.WaitGroup
	for i := range 5 {
		wait.Go(func() {
			r, err := e.Generate(ctx, ask("", text(i, 150), 60), func(string) error {
				cancel()
				return nil
			})
			if !errors.Is(err, context.Canceled) || r.Usage.CachedTokens < 0 || r.Finish != "" {
				t.Errorf("%+v, error %v", r, err)
			}
		})
	}
	wait.Wait()
	idle(t, e)
	generate(t, e, ask("", "hello", 3))
}

// However a request breaks off, its blocks are free when Generate returns, and nothing more is computed for it.
func TestBrokenOff(t *testing.T) {
	path := tiny(t)
	question, enough := speaks(t, path), errors.New("enough")
	for name, onText := range map[string]func(cancel func()) error{
		"cancelled": func(cancel func()) error { cancel(); return nil },
		"error":     func(func()) error { return enough },
		"panic":     func(func()) error { panic("mine") },
	} {
		t.Run(name, func(t *testing.T) {
			gate := make(chan bool) // the engine computes nothing until it is closed
			e := open(t, 30, local.Config{Model: path, OnCache: func([]kvevents.Event) { <-gate }})
			defer close(gate)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			func() {
				defer func() {
					if got := recover(); (got == "mine") != (name == "panic") {
						t.Errorf("recovered %v", got)
					}
				}()
				r, err := e.Generate(ctx, question, func(string) error { return onText(cancel) })
				if !errors.Is(err, engines.ErrInterrupted) || !errors.Is(err, context.Canceled) && !errors.Is(err, enough) || r.Text == "" ||
					r.Finish != "" {
					t.Errorf("%+v, error %v", r, err)
				}
			}()
			if s := e.Stats(); s.UsedBlocks+s.Running != 0 || s.GeneratedTokens != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// speaks returns a request for a long answer that begins with text, and whose prompt fills a block.
func speaks(t *testing.T, path string) engines.Request {
	t.Helper()
	e := open(t, 30, local.Config{Model: path})
	for i := range 100 {
		if generate(t, e, ask("", text(i, 40), 1)).Text != "" {
			return ask("", text(i, 40), 300)
		}
	}
	t.Fatal("the model has nothing to say")
	return engines.Request{}
}

func TestClose(t *testing.T) {
	calls := 0
	generating, release := make(chan bool), make(chan bool)
	e := open(t, 60, local.Config{Running: 1, OnCache: func([]kvevents.Event) {
		if calls++; calls == 4 { // the prompt came with the first call, the answer since then
			close(generating)
			<-release
		}
	}})
	var wait sync.WaitGroup
	for i := range 3 {
		wait.Go(func() {
			if _, err := e.Generate(t.Context(), ask("", text(i, 100), 300), nil); !errors.Is(err, local.ErrClosed) {
				t.Errorf("error %v of a request that Close ended", err)
			}
		})
	}
	<-generating
	wait.Go(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	for refused := false; !refused; { // until Close has begun
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, err := e.Generate(ctx, ask("", "hello", 3), nil)
		refused = errors.Is(err, local.ErrClosed)
		cancel()
	}
	close(release)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	wait.Wait()
	if _, err := e.Generate(t.Context(), ask("", "hello", 3), nil); !errors.Is(err, local.ErrClosed) {
		t.Errorf("error %v of a request after Close", err)
	}
	if _, err := e.Score(t.Context(), ask("", "hello", 3), "you", nil); !errors.Is(err, local.ErrClosed) {
		t.Errorf("error %v of a score after Close", err)
	}
	if s := e.Stats(); s.Running+s.Waiting+s.UsedBlocks != 0 {
		t.Errorf("after Close, %+v", s)
	}
}

// Requests that left nothing in the cache are not kept: those without a whole block, and those that were given up
// before they began.
func TestNothingInTheCache(t *testing.T) {
	began, release := make(chan bool), make(chan bool)
	hold := sync.OnceFunc(func() { close(began); <-release })
	e := open(t, 100, local.Config{Running: 1, Step: 16, OnCache: func([]kvevents.Event) { hold() }})
	for i := range 20 {
		id := fmt.Sprint("short-", i)
		if _, err := e.GenerateTokens(t.Context(), engines.Request{ID: id, MaxTokens: 1}, []int32{5, 6, int32(7 + i)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := e.Stats().ResidentRequests; n != 0 {
		t.Errorf("%d requests of less than a block have something in the cache", n)
	}
	var running, waiting sync.WaitGroup
	running.Go(func() { generate(t, e, ask("running", text(0, 100), 3)) })
	<-began // with its first block; its next step waits
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 20 {
		waiting.Go(func() {
			if _, err := e.Generate(ctx, ask(fmt.Sprint("waiting-", i), fmt.Sprint("boat ", i, text(i, 100)), 3), nil); !errors.Is(
				err,
				context.Canceled,
			) {
				t.Errorf("error %v", err)
			}
		})
	}
	eventually(t, "20 requests wait", func() bool { return e.Stats().Waiting == 20 })
	cancel()
	waiting.Wait()
	if n := e.Stats().ResidentRequests; n != 1 {
		t.Errorf("%d requests have something in the cache, after those that waited were given up", n)
	}
	close(release)
	running.Wait()
	idle(t, e)
	generate(t, e, ask("again", text(1, 100), 3))
	if _, err := e.GenerateTokens(t.Context(), engines.Request{ID: "again", MaxTokens: 1}, []int32{5}, nil); err != nil {
		t.Fatal(err)
	}
	if n := e.Stats().ResidentRequests; n != 1 { // the one that ran
		t.Errorf("%d requests have something in the cache", n)
	}
	e.Clear()
	if n := e.Stats().ResidentRequests; n != 0 {
		t.Errorf("%d requests have something in an empty cache", n)
	}
}

func TestSeed(t *testing.T) {
	e := open(t, 100, local.Config{})
	answer := func(pairs ...any) string {
		req := ask("", text(2, 40), 40)
		req.Extra = extra(append(pairs, "ignore_eos", true)...)
		return generate(t, e, req).Text
	}
	if a, b := answer("temperature", 1, "seed", 7), answer("temperature", 1, "seed", 7); a != b {
		t.Errorf("the same seed gives %q and %q", a, b)
	}
	if a, b := answer("temperature", 50, "seed", 7), answer("temperature", 50, "seed", 8); a == b {
		t.Errorf("two seeds give %q", a)
	}
	if a, b := answer("temperature", 50), answer("temperature",
		50); a == b { // hot enough for letters: bytes that are no text all look the same
		t.Errorf("no seed gives %q twice", a)
	}
	if a, b := answer("temperature", 1, "top_p", 1e-9), answer(); a != b {
		t.Errorf("the most probable token alone gives %q, greedy %q", a, b)
	}
	if a, b := answer("repetition_penalty", 1, "no_repeat_ngram_size", 0), answer(); a != b {
		t.Errorf("penalties that are off give %q, greedy %q", a, b)
	}
	for _, penalty := range []string{"repetition_penalty", "no_repeat_ngram_size"} {
		if a, b, greedy := answer(penalty, 3), answer(penalty, 3), answer(); a != b || a == greedy {
			t.Errorf("%s 3 gives %q and %q, greedy %q", penalty, a, b, greedy)
		}
	}
}

// Without thinking, the prompt of a model that thinks ends behind an empty block of thoughts.
func TestNoThinking(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tinymodel.Write(path, tinymodel.Options{Thinking: true}); err != nil {
		t.Fatal(err)
	}
	for without, want := range map[bool]string{false: "assistant\n", true: "assistant\n<think>\n\n</think>\n\n"} {
		e := open(t, 100, local.Config{Model: path, NoThinking: without})
		if got := e.Detokenize(e.TokenizeChat([]engines.Message{{Role: engines.User, Content: "Hello"}})); !strings.HasSuffix(got, want) {
			t.Errorf("NoThinking %v: the prompt is %q, want %q at its end", without, got, want)
		}
	}
}
