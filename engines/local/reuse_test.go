package local_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
)

// blockRequest asks about blocks, of about 60 tokens each, in an order.
func blockRequest(id string, seeds ...int) engines.Request {
	req := ask(id, "", 20)
	content := "Read this.\n"
	for _, s := range seeds {
		from := len(content)
		content += text(s, 60) + "é\n"
		req.Blocks = append(req.Blocks, engines.BlockSpan{Message: 1, From: from, To: len(content)})
	}
	req.Messages = []engines.Message{{Role: engines.System, Content: "Be short."}, {Role: engines.User, Content: content + "What is it?"}}
	return req
}

// TestReuseOff: by default blocks change nothing.
func TestReuseOff(t *testing.T) {
	e := open(t, 200, local.Config{})
	req := blockRequest("with", 1, 2, 3)
	with := generate(t, e, req)
	e.Clear()
	req.Blocks = nil
	if without := generate(t, e, req); without.Text != with.Text || without.Usage != with.Usage {
		t.Errorf("%+v with blocks, %+v without", with, without)
	}
}

// TestReuse: blocks that were computed are found in any order, and with all of it computed again answers are those of a prefill.
func TestReuse(t *testing.T) {
	for _, mode := range []string{local.ReuseBlocks, local.ReuseHybrid} {
		t.Run(mode, func(t *testing.T) {
			e := open(t, 400, local.Config{Reuse: mode, Recompute: 1})
			req := blockRequest("exact", 3, 1, 2)
			tokens, blocks, err := e.TokenizeBlocks(req)
			if err != nil || len(blocks) != 3 {
				t.Fatal(blocks, err)
			}
			exact := req
			exact.Blocks = nil
			want, err := e.GenerateTokens(t.Context(), exact, tokens, nil)
			if err != nil {
				t.Fatal(err)
			}
			e.Clear()
			generate(t, e, blockRequest("first", 1, 2, 3))
			if got := generate(t, e, req); got.Text != want.Text {
				t.Errorf("%q, want %q", got.Text, want.Text)
			}
			req.Extra = extra("ignore_eos", true, "recompute", 0.1)
			got := generate(t, e, req)
			if question := len(tokens) - blocks[2].To; got.Usage.CachedTokens < (len(tokens)-question)*8/10 ||
				got.Usage.PromptTokens != len(tokens) {
				t.Errorf("%+v of %d tokens, %d behind the blocks", got.Usage, len(tokens), question)
			}
			score, err := e.Score(t.Context(), req, "one two", nil)
			if err != nil || score.Cached != got.Usage.CachedTokens {
				t.Errorf("scored with %d cached tokens, %v; generated with %d", score.Cached, err, got.Usage.CachedTokens)
			}
			idle(t, e)
		})
	}
}

// TestHybridIsExactWhereItIsCheaper: a prompt that is in the cache as it stands is taken from there.
func TestHybridIsExactWhereItIsCheaper(t *testing.T) {
	e := open(t, 400, local.Config{Reuse: local.ReuseHybrid})
	req := blockRequest("one", 1, 2, 3)
	tokens, _, err := e.TokenizeBlocks(req)
	if err != nil {
		t.Fatal(err)
	}
	exact := req
	exact.Blocks = nil
	want, err := e.GenerateTokens(t.Context(), exact, tokens, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := generate(t, e, req); got.Text != want.Text || got.Usage.CachedTokens != (len(tokens)-1)/16*16 {
		t.Errorf("%+v, want %q", got, want.Text)
	}
}

// TestReuseIsNoPrefix: subscribers hear that behind the head nothing is left for others.
func TestReuseIsNoPrefix(t *testing.T) {
	e := open(t, 400, local.Config{Reuse: local.ReuseBlocks})
	var mu sync.Mutex
	var events []contextpilot.Event
	defer e.Subscribe(func(more ...contextpilot.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, more...)
	})()
	req := blockRequest("r", 1, 2)
	tokens, blocks, err := e.TokenizeBlocks(req)
	if err != nil {
		t.Fatal(err)
	}
	generate(t, e, req)
	mu.Lock()
	defer mu.Unlock()
	if len(events) < 2 || events[0].Kind != contextpilot.Served || events[1].Kind != contextpilot.Shrunk ||
		events[1].Tokens != blocks[0].From ||
		events[1].Prompt != len(tokens) {
		t.Errorf("%+v", events)
	}
	if n := e.Prefix(tokens, ""); n > blocks[0].To {
		t.Errorf("%d tokens of the prompt are found by others", n)
	}
}

// TestBlocksThatAreWrong: the error names the member and the value, and nothing is computed.
func TestBlocksThatAreWrong(t *testing.T) {
	e := open(t, 200, local.Config{Reuse: local.ReuseBlocks})
	good := blockRequest("x", 1, 2)
	for want, change := range map[string]func(*engines.Request){
		"blocks[0].message 2: there are 2 messages": func(r *engines.Request) { r.Blocks[0].Message = 2 },
		"blocks[1].message -1":                      func(r *engines.Request) { r.Blocks[1].Message = -1 },
		"blocks[1] from 140 to 9999":                func(r *engines.Request) { r.Blocks[1].From, r.Blocks[1].To = 140, 9999 },
		"blocks[0] from 5 to 5":                     func(r *engines.Request) { r.Blocks[0].From, r.Blocks[0].To = 5, 5 },
		"blocks[0] from -1":                         func(r *engines.Request) { r.Blocks[0].From = -1 },
		"not at whole characters of message 1":      func(r *engines.Request) { r.Blocks[0].To -= 2 },
		"it is not behind the block before it":      func(r *engines.Request) { r.Blocks[0], r.Blocks[1] = r.Blocks[1], r.Blocks[0] },
		`reuse "often": want one of prefix, blocks`: func(r *engines.Request) { r.Extra = extra("reuse", "often") },
		"recompute 1.5: want 0 to 1":                func(r *engines.Request) { r.Extra = extra("recompute", 1.5) },
		`selector "best"`:                           func(r *engines.Request) { r.Extra = extra("selector", "best") },
	} {
		r := good
		r.Blocks = append([]engines.BlockSpan(nil), good.Blocks...)
		change(&r)
		if _, err := e.Generate(t.Context(), r, nil); !errors.Is(err, engines.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if s := e.Stats(); s.PromptTokens != 0 {
		t.Errorf("%+v", s)
	}
	for _, c := range []local.Config{{Reuse: "all"}, {Recompute: -0.1}, {Selector: "x"}} {
		c.Model = tiny(t)
		if _, err := local.Open(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// TestTextsThatLookLikeCuts: a text with the byte that marks blocks inside is answered without reuse, and loses nothing.
func TestTextsThatLookLikeCuts(t *testing.T) {
	e := open(t, 200, local.Config{Reuse: local.ReuseBlocks})
	req := blockRequest("x", 1)
	req.Messages[0].Content += "\xff."
	tokens, blocks, err := e.TokenizeBlocks(req)
	if err != nil || blocks != nil || len(tokens) != len(e.TokenizeChat(req.Messages)) {
		t.Errorf("%d tokens, blocks %v, %v", len(tokens), blocks, err)
	}
}
