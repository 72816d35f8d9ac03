package upstream_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// normal is how a sidecar gets back to its own ID, as our vLLM plugin does it.
func normal(id string) string {
	rest, text := strings.CutPrefix(id, "cmpl-")
	rest = strings.TrimPrefix(rest, "chatcmpl-")
	rest = regexp.MustCompile(`-[0-9a-f]{8}$`).ReplaceAllString(rest, "")
	if text {
		rest = regexp.MustCompile(`-\d+$`).ReplaceAllString(rest, "")
	}
	return rest
}

// lostBook notes evictions.
type lostBook struct {
	mu  sync.Mutex
	all []upstream.Eviction
}

func (b *lostBook) note(lost ...upstream.Eviction) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, lost...)
}

// TestEvictionRules: a cache of ten blocks, prompts that share two of them and have six of their own.
func TestEvictionRules(t *testing.T) {
	shared := strings.Repeat("same ", 32)
	prompt := func(n int) string { return shared + strings.Repeat(fmt.Sprintf("own%d ", n), 96) }
	tests := []struct {
		rule upstream.EvictRule
		want []string
	}{
		// Each takes the last two blocks of the one before the last, and four of the last. What r0 stored is not all gone:
		// the shared blocks were its own.
		{upstream.FirstLoss, []string{"r0", "r1", "r2"}},
		{upstream.OwnLost, []string{"r1"}},
		{upstream.EachLoss, []string{"r0:64", "r0:32", "r1:64", "r1:32", "r2:64"}},
	}
	for _, engineIDs := range []bool{false, true} {
		for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
			for _, tt := range tests {
				t.Run(fmt.Sprint(tt.rule, engineIDs, path), func(t *testing.T) {
					var book lostBook
					s := upstream.New(upstream.Options{
						CapacityTokens: 160, Tokens: 1, EvictRule: tt.rule, EngineIDs: engineIDs, Evict: book.note,
					})
					for n := range 4 {
						body := fmt.Sprintf(`{"rid":"r%d","prompt":%q,"messages":[{"role":"user","content":%[2]q}]}`, n, prompt(n))
						post(t.Context(), s, path, body)
					}
					var got []string
					for _, e := range book.all {
						id := e.Request
						if engineIDs {
							if id = normal(id); id == e.Request {
								t.Errorf("%s is no ID of an engine", id)
							}
						}
						if e.ResidentTokens > 0 {
							id += fmt.Sprint(":", e.ResidentTokens)
						}
						got = append(got, id)
					}
					if !slices.Equal(got, tt.want) {
						t.Errorf("reported %v, want %v", got, tt.want)
					}
				})
			}
		}
	}
}

// TestEvictedOnce: with every rule but EachLoss a request is reported once, unless it was sent again.
func TestEvictedOnce(t *testing.T) {
	for _, rule := range []upstream.EvictRule{upstream.OwnLost, upstream.FirstLoss} {
		var book lostBook
		s := upstream.New(upstream.Options{CapacityTokens: 400, Tokens: 1, EvictRule: rule, Evict: book.note})
		for n := range 200 {
			body := fmt.Sprintf(`{"rid":"r%d","prompt":%q}`, n, strings.Repeat(fmt.Sprintf("w%d ", n%7), 20+n*37%200))
			post(t.Context(), s, "/v1/completions", body)
		}
		seen := map[string]bool{}
		for _, e := range book.all {
			if seen[e.Request] || e.ResidentTokens != 0 {
				t.Errorf("rule %s: %+v a second time", rule, e)
			}
			seen[e.Request] = true
		}
		if len(seen) < 100 {
			t.Errorf("rule %s: only %d evictions", rule, len(seen))
		}
	}
}
