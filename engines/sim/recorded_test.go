package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// The simulator finds as many cached tokens as a vLLM 0.32.0 server reported for the same requests, through hits, a salt,
// evictions and a reset. Token numbers stand for texts, and a salt makes others of them.
func TestRecordedVLLM(t *testing.T) {
	const blocks, block = 63, 32 // as the server was started
	recorded, err := os.ReadFile(filepath.Join("..", "kvevents", "residency", "testdata", "trace-vllm-0.32.0.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	answer := ""
	engine := sim.New(sim.Options{CapacityTokens: blocks * block, BlockTokens: block, Reply: func(engines.Request) string { return answer }})
	requests := 0
	for line := range bytes.Lines(recorded) {
		var l struct {
			K, ID, Text string
			Salt        string `json:"cache_salt"`
			Cached      int
		}
		var lists struct{ Tokens, Output []int }
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if l.K == "note" && strings.HasPrefix(l.Text, "POST /reset_prefix_cache") {
			engine.Reset()
		}
		if l.K != "request" {
			continue
		}
		if err := json.Unmarshal(line, &lists); err != nil {
			t.Fatal(err)
		}
		requests++
		words := func(tokens []int) string {
			var b strings.Builder
			for _, n := range tokens {
				if l.Salt != "" {
					b.WriteByte('s')
				}
				fmt.Fprint(&b, n, " ")
			}
			return b.String()
		}
		answer = words(lists.Output)
		got, err := engine.Generate(context.Background(), engines.Request{
			ID: l.ID, Messages: []engines.Message{{Role: engines.User, Content: words(lists.Tokens)}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Usage.PromptTokens != len(lists.Tokens) || got.Usage.CachedTokens != l.Cached {
			t.Errorf("%s: %d of %d tokens cached, the server reported %d of %d",
				l.ID, got.Usage.CachedTokens, got.Usage.PromptTokens, l.Cached, len(lists.Tokens))
		}
	}
	if requests != 11 {
		t.Errorf("%d requests, want 11", requests)
	}
}
