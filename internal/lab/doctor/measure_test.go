package doctor_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/doctor"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// TestBlockIsMeasured: of a server that does not say how long its blocks are, a few prompts show it, and these are all that is sent.
func TestBlockIsMeasured(t *testing.T) {
	for _, tt := range []struct {
		kind  doctor.Kind
		block int
		want  string
	}{
		{doctor.Other, 1, "1 token, measured with"},
		{doctor.Other, 8, "8 tokens, measured with"},
		{doctor.Other, 16, "16 tokens, measured with"},
		{doctor.Other, 32, "32 tokens, measured with"},
		{doctor.Other, 100, "100 tokens, measured with"},
		{doctor.Other, 128, "128 tokens, measured with"},
		{doctor.Other, 256, "256 tokens, measured with"},
		{doctor.Other, 400, "400 tokens, measured with"},
		{doctor.Other, 784, "784 tokens, measured with"},
		{doctor.VLLM, 16, "16 tokens, measured with"},
		{doctor.VLLM, 64, "64 tokens, measured with"},
	} {
		t.Run(fmt.Sprintf("%s %d", tt.kind, tt.block), func(t *testing.T) {
			t.Parallel()
			f := &fake{kind: tt.kind, block: tt.block, noMetrics: true, window: 32768}
			r := examine(t, doctor.Config{Engine: serve(t, f)})
			c := find(t, r, "block size")
			if !strings.HasPrefix(c.Saw, tt.want) {
				t.Errorf("%+v", c)
			}
			if s := find(t, r, "shared prefix"); s.Result != doctor.OK && !strings.Contains(s.Saw, "too few blocks for a verdict") {
				t.Errorf("%+v", s)
			}
			if f.chats > 15 || r.Sent.Prompts != f.chats {
				t.Errorf("%d prompts, said %d", f.chats, r.Sent.Prompts)
			}
		})
	}
}

// TestBlockOfSimulator: the same of a server with a cache of its own, whose tokens are words.
func TestBlockOfSimulator(t *testing.T) {
	for _, block := range []int{1, 16, 48} {
		server := httptest.NewServer(upstream.New(upstream.Options{BlockTokens: block}))
		defer server.Close()
		r := examine(t, doctor.Config{Engine: server.URL})
		if c := find(t, r, "block size"); !strings.HasPrefix(c.Saw, fmt.Sprintf("%d token", block)) || wrong(r) != nil {
			t.Errorf("blocks of %d: %+v\n%s", block, c, printed(r))
		}
	}
}

// TestNothingIsReusedAtAnyLength: the longer prompt is no excuse for a server that reuses nothing.
func TestNothingIsReusedAtAnyLength(t *testing.T) {
	f := &fake{kind: doctor.Other, block: 16, noCache: true, window: 32768}
	r := examine(t, doctor.Config{Engine: serve(t, f)})
	if c := find(t, r, "prefix caching"); c.Result != doctor.Problem {
		t.Errorf("%+v", c)
	}
}
