package local_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
)

// The token that ends an answer was generated: it counts, in the answer's usage as in the engine's counters.
func TestStopTokenCounts(t *testing.T) {
	e := open(t, 100, local.Config{})
	ended := 0
	for seed := range 10 { // of a hot random model, some come to the end soon
		before := e.Stats().GeneratedTokens
		r := generate(t, e, engines.Request{
			MaxTokens: 200, Extra: extra("temperature", 5, "seed", seed),
			Messages: []engines.Message{{Role: engines.User, Content: "hello"}},
		})
		if got := e.Stats().GeneratedTokens - before; got != int64(r.Usage.OutputTokens) {
			t.Errorf("seed %d: usage has %d tokens, counters have %d", seed, r.Usage.OutputTokens, got)
		}
		if r.Finish == "stop" {
			ended++
		} else if r.Usage.OutputTokens != 200 {
			t.Errorf("seed %d: %+v", seed, r)
		}
	}
	if ended == 0 {
		t.Error("no answer has come to its end")
	}
}

// Stop texts end an answer wherever they come, though they come in several tokens, and are not given out.
func TestStop(t *testing.T) {
	e := open(t, 100, local.Config{})
	whole := generate(t, e, ask("", text(1, 50), 60)).Text
	if len(whole) < 40 {
		t.Fatalf("the model's answer %q is too short for this test", whole)
	}
	for at := 5; at+8 < len(whole) && at < 40; at += 7 {
		stop := strings.ToValidUTF8(whole[at:at+6], "")
		if stop == "" || strings.Contains(stop, "\uFFFD") {
			continue
		}
		want := whole[:strings.Index(whole, stop)]
		req := ask(fmt.Sprint("stop-", at), text(1, 50), 60)
		req.Extra = extra("ignore_eos", true, "stop", []string{"never to be seen", stop})
		var given strings.Builder
		r, err := e.Generate(t.Context(), req, func(piece string) error { given.WriteString(piece); return nil })
		if err != nil || r.Text != want || given.String() != want || r.Finish != "stop" {
			t.Errorf("stop at %q: %+v, error %v, want %q of %q", stop, r, err, want, whole)
		}
		if r.Usage.CachedTokens <= 0 || r.Usage.OutputTokens >= 60 && !strings.HasSuffix(whole, stop) {
			t.Errorf("stop at %q: usage %+v", stop, r.Usage)
		}
	}
	idle(t, e)
}

func TestMaxTokens(t *testing.T) {
	e := open(t, 20, local.Config{MaxTokens: 9})
	req := ask("", "hello", 0)
	if n := generate(t, e, req).Usage.OutputTokens; n != 9 {
		t.Errorf("%d tokens by default", n)
	}
	req.MaxTokens = 5
	if n := generate(t, e, req).Usage.OutputTokens; n != 5 {
		t.Errorf("%d tokens, want 5", n)
	}
	req.Extra["max_completion_tokens"] = extra("", 1)[""]
	if n := generate(t, e, req).Usage.OutputTokens; n != 1 {
		t.Errorf("%d tokens, want 1", n)
	}
	// An answer may fill the cache to its last token.
	room := e.Context() - len(e.TokenizeChat(req.Messages))
	req.Extra["max_completion_tokens"] = extra("", room)[""]
	if n := generate(t, e, req).Usage.OutputTokens; n != room {
		t.Errorf("%d tokens, want %d", n, room)
	}
}
