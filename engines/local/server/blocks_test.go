package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local"
)

// chatWith is a chat whose second message has two blocks, in an order.
func chatWith(t *testing.T, extra string, order ...int) string {
	t.Helper()
	texts := []string{strings.Repeat("The tide is in the harbour. ", 12), strings.Repeat("The boats are out at sea. ", 12)}
	content := "Read.\n"
	var blocks []map[string]int
	for _, i := range order {
		blocks = append(blocks, map[string]int{"message": 1, "from": len(content), "to": len(content) + len(texts[i])})
		content += texts[i]
	}
	body := map[string]any{
		"messages": []map[string]string{{"role": "system", "content": "Be short."}, {"role": "user", "content": content + "Where are they?"}},
		"blocks":   blocks, "max_tokens": 5, "ignore_eos": true,
	}
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(data), "}") + extra + "}"
}

// TestBlocksOverHTTP: one member names the blocks of a chat, and they are found again in another order.
func TestBlocksOverHTTP(t *testing.T) {
	r := start(t, func(s *settings) { s.engine.Reuse, s.engine.Recompute = local.ReuseBlocks, 0.1 })
	cached := func(body string) (share float64) {
		usage := r.post(t, chatPath, body).object(t)["usage"].(map[string]any)
		return usage["prompt_tokens_details"].(map[string]any)["cached_tokens"].(float64) / usage["prompt_tokens"].(float64)
	}
	cached(chatWith(t, "", 0, 1))
	if got := cached(chatWith(t, "", 1, 0)); got < 0.7 {
		t.Errorf("%g of the prompt are cached in another order", got)
	}
	r.post(t, "/reset_prefix_cache", "")
	off := `,"reuse":"prefix"`
	cached(chatWith(t, off, 0, 1))
	if got := cached(chatWith(t, off, 1, 0)); got > 0.3 {
		t.Errorf("%g of the prompt are cached without reuse", got)
	}
}

// TestBlocksRefused: wrong members are named.
func TestBlocksRefused(t *testing.T) {
	r := start(t, func(s *settings) { s.engine.Reuse = local.ReuseBlocks })
	for body, want := range map[string]string{
		chatWith(t, `,"reuse":"often"`, 0, 1):              `reuse \"often\"`,
		chatWith(t, `,"recompute":2`, 0, 1):                "recompute 2",
		chatWith(t, `,"recompute":"x"`, 0, 1):              `recompute \"x\"`,
		`{` + ask + `,"blocks":[{"from":0,"to":99999}]}`:   "blocks[0] from 0 to 99999",
		`{` + ask + `,"blocks":[{"message":9,"to":1}]}`:    "blocks[0].message 9",
		`{` + ask + `,"blocks":"all"}`:                     `blocks \"all\"`,
		`{` + ask + `,"blocks":[{"from":"a"}]}`:            "blocks",
		`{` + ask + `,"blocks":[{"from":-1,"to":` + `1}]}`: "blocks[0] from -1",
	} {
		if got := r.post(t, chatPath, body); got.status != http.StatusBadRequest ||
			!strings.Contains(strings.ReplaceAll(string(got.body), `\\\"`, `\"`), want) {
			t.Errorf("status %d: %s, want %s", got.status, got.body, want)
		}
	}
	if got := r.post(t, textPath, `{"prompt":"a","max_tokens":1,"blocks":[{"from":0,"to":1}]}`); got.status != http.StatusBadRequest ||
		!strings.Contains(string(got.body), "blocks") {
		t.Errorf("status %d: %s", got.status, got.body)
	}
}
