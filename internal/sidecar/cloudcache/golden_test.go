package cloudcache_test

import (
	"bytes"
	stdcmp "cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
)

// recordings are exchanges with the ContextPilot 0.4.2 server in cloud mode.
//
//go:embed testdata/cloud.jsonl
var recordings []byte

type example struct {
	Name, Mode string
	Steps      []struct {
		Method, Path    string
		Body            json.RawMessage
		Response        json.RawMessage
		ResponseHeaders map[string]json.RawMessage `json:"response_headers"`
		UpstreamReply   struct {
			JSON struct {
				Usage struct {
					Input    *int `json:"input_tokens"`
					Written  *int `json:"cache_creation_input_tokens"`
					Read     *int `json:"cache_read_input_tokens"`
					Prompt   *int `json:"prompt_tokens"`
					Output   *int `json:"output_tokens"`
					Complete *int `json:"completion_tokens"`
					Details  struct {
						Cached *int `json:"cached_tokens"`
					} `json:"prompt_tokens_details"`
				}
			}
		} `json:"upstream_reply"`
		UpstreamReceived struct {
			Path    string
			Headers map[string]string
			JSON    json.RawMessage
		} `json:"upstream_received"`
	}
}

// Where ours differs from the recordings, and why. Everything else in them must agree.
const (
	lastResult = "the end of the conversation is marked, which the next turn reads; there, a short result used up one of three marks"
	firstRead  = "a request that reads nothing is a miss; there, nothing is ever looked up"
	read       = "what the provider read is a hit; there, every request is a new entry"
	sameEntry  = "the same prompt is the same entry; there, every request is a new one"
)

var differences = []struct {
	examples string // all that begin so
	step     int
	part     string // body, header or stats
	member   string
	recorded string
	ours     string
	why      string
}{
	{"cloud/anthropic", 1, "body", "messages.0.content.4.cache_control.type", "", `"ephemeral"`, lastResult},
	{"cloud/anthropic", 2, "body", "messages.0.content.4.cache_control.type", "", `"ephemeral"`, lastResult},
	{"cloud/minimax", 1, "body", "messages.0.content.4.cache_control.type", "", `"ephemeral"`, lastResult},
	{"cloud/minimax", 2, "body", "messages.0.content.4.cache_control.type", "", `"ephemeral"`, lastResult},
	{"cloud/anthropic-extended", 1, "body", "messages.0.content.4.cache_control.ttl", "", `"1h"`, lastResult},
	{"cloud/anthropic-extended", 2, "body", "messages.0.content.4.cache_control.ttl", "", `"1h"`, lastResult},

	{"cloud/anthropic", 1, "header", "ttl_stats.total_misses", "0", "1", firstRead},
	{"cloud/anthropic", 2, "header", "ttl_stats.total_misses", "0", "1", firstRead},
	{"cloud/anthropic", 3, "stats", "total_misses", "0", "1", firstRead},
	{"cloud/anthropic", 2, "header", "ttl_stats.total_hits", "0", "1", read},
	{"cloud/anthropic", 3, "stats", "total_hits", "0", "1", read},
	{"cloud/anthropic", 2, "header", "ttl_stats.hit_rate_pct", "0", "50", read},
	{"cloud/anthropic", 3, "stats", "hit_rate_pct", "0", "50", read},
	{"cloud/minimax", 1, "header", "ttl_stats.total_misses", "0", "1", firstRead},
	{"cloud/minimax", 2, "header", "ttl_stats.total_misses", "0", "1", firstRead},
	{"cloud/minimax", 3, "stats", "total_misses", "0", "1", firstRead},
	{"cloud/minimax", 2, "header", "ttl_stats.total_hits", "0", "1", read},
	{"cloud/minimax", 3, "stats", "total_hits", "0", "1", read},
	{"cloud/minimax", 2, "header", "ttl_stats.hit_rate_pct", "0", "50", read},
	{"cloud/minimax", 3, "stats", "hit_rate_pct", "0", "50", read},

	{"cloud/openai", 1, "header", "ttl_stats.total_hits", "0", "1", read},
	{"cloud/openai", 2, "header", "ttl_stats.total_hits", "0", "2", read},
	{"cloud/openai", 3, "stats", "total_hits", "0", "2", read},
	{"cloud/openai", 1, "header", "ttl_stats.hit_rate_pct", "0", "100", read},
	{"cloud/openai", 2, "header", "ttl_stats.hit_rate_pct", "0", "100", read},
	{"cloud/openai", 3, "stats", "hit_rate_pct", "0", "100", read},
	{"cloud/openai", 2, "header", "ttl_stats.active_entries", "2", "1", sameEntry},
	{"cloud/openai", 2, "header", "ttl_stats.total_entries", "2", "1", sameEntry},
	{"cloud/openai", 2, "header", "ttl_stats.total_additions", "2", "1", sameEntry},
	{"cloud/openai", 2, "header", "ttl_stats.total_cached_tokens", "80", "40", sameEntry},
	{"cloud/openai", 3, "stats", "active_entries", "2", "1", sameEntry},
	{"cloud/openai", 3, "stats", "total_entries", "2", "1", sameEntry},
	{"cloud/openai", 3, "stats", "total_additions", "2", "1", sameEntry},
	{"cloud/openai", 3, "stats", "total_cached_tokens", "80", "40", sameEntry},
}

func TestRecordings(t *testing.T) {
	var want, got []string
	line := func(name string, step int, part, member, recorded, ours string) string {
		return fmt.Sprintf("%s step %d, %s, %s: recorded %q, ours %q", name, step, part, member, recorded, ours)
	}
	n := 0
	for text := range bytes.Lines(recordings) {
		var e example
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(err)
		}
		n++
		for name, ttl := range map[string]string{"cloud/anthropic-extended": `"1h"`, "cloud/openai": `"1h"`, "cloud/openai-extended": `"24h"`} {
			if e.Name == name { // there, it always says 5m
				for step, part := range []string{"stats", "header", "header", "stats"} {
					member := "default_ttl"
					if part == "header" {
						member = "ttl_stats.default_ttl"
					}
					want = append(want, line(e.Name, step, part, member, `"5m"`, ttl))
				}
			}
		}
		for _, d := range differences {
			if strings.HasPrefix(e.Name+"$", d.examples) {
				want = append(want, line(e.Name, d.step, d.part, d.member, d.recorded, d.ours))
			}
		}
		t.Run(e.Name, func(t *testing.T) {
			replay(t, e, func(step int, part, member, recorded, ours string) {
				got = append(got, line(e.Name, step, part, member, recorded, ours))
			})
		})
	}
	if n != 6 {
		t.Errorf("%d examples, want 6", n)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences from the recordings (-listed +found):\n%s", diff)
	}
}

func replay(t *testing.T, e example, differs func(step int, part, member, recorded, ours string)) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := provider(t, cloudcache.Options{
		Provider: strings.TrimPrefix(e.Mode, "cloud-"), Key: "KEY", Extended: strings.HasSuffix(e.Name, "-extended"),
		Now: func() time.Time { return now },
	})
	var account cloudcache.Account
	for i, step := range e.Steps {
		now = now.Add(time.Second)
		compare := func(part string, recorded []byte, ours any) {
			text, err := json.Marshal(ours)
			if err != nil {
				t.Fatal(err)
			}
			a, b := members(t, recorded), members(t, text)
			for _, m := range slices.Sorted(keys(a, b)) {
				if a[m] != b[m] {
					differs(i, part, m, a[m], b[m])
				}
			}
		}
		if step.Path == "/cloud/stats" {
			stats := p.Stats("")
			compare("stats", step.Response, struct { // the account is ours alone
				cloudcache.Counts
				Provider string `json:"provider"`
			}{stats.Counts, stats.Provider})
			if diff := cmp.Diff(account, stats.Account); diff != "" {
				t.Errorf("step %d: account (-want +got):\n%s", i, diff)
			}
			continue
		}
		if got := p.Base().Path + step.Path; got != step.UpstreamReceived.Path {
			t.Errorf("step %d: path %s, want %s", i, got, step.UpstreamReceived.Path)
		}
		headers := http.Header{"Authorization": {"Bearer client"}, "X-Api-Key": {"client"}}
		for name, values := range p.Headers() {
			delete(headers, name)
			for _, v := range values {
				headers.Add(name, v)
			}
		}
		want := http.Header{}
		for name, v := range step.UpstreamReceived.Headers {
			want.Set(name, v)
		}
		if diff := cmp.Diff(want, headers); diff != "" {
			t.Errorf("step %d: headers (-want +got):\n%s", i, diff)
		}
		if step.Method != http.MethodPost {
			continue
		}
		body := p.Mark(step.Path, step.Body)
		compare("body", step.UpstreamReceived.JSON, json.RawMessage(body))
		u := step.UpstreamReply.JSON.Usage
		usage := cloudcache.Usage{
			Prompt: first(u.Input, u.Prompt), Read: first(u.Read, u.Details.Cached), Written: first(u.Written),
			Output: first(u.Output, u.Complete),
		}
		account.Requests++
		account.Plain += *stdcmp.Or(u.Input, u.Prompt)
		account.Read += *stdcmp.Or(u.Read, u.Details.Cached)
		account.Output += *stdcmp.Or(u.Output, u.Complete)
		switch long := strings.HasPrefix(e.Name, "cloud/anthropic-ext"); {
		case u.Written == nil: // OpenAI, whose prompt contains what was read
			account.Plain -= *u.Details.Cached
		case long:
			account.Long += *u.Written
		default:
			account.Written += *u.Written
		}
		compare("header", step.ResponseHeaders["x-contextpilot-cloud-cache"], p.Answered(p.Sent("", step.Path, body), usage))
	}
}

func first(numbers ...*int) int {
	for _, n := range numbers {
		if n != nil {
			return *n
		}
	}
	return -1
}

// members returns the scalars of a JSON text by their paths.
func members(t *testing.T, text []byte) map[string]string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, v := range v {
				walk(path+"."+name, v)
			}
		case []any:
			for i, v := range v {
				walk(fmt.Sprintf("%s.%d", path, i), v)
			}
		default:
			text, _ := json.Marshal(v)
			out[strings.TrimPrefix(path, ".")] = string(text)
		}
	}
	walk("", v)
	return out
}

func keys(maps ...map[string]string) func(func(string) bool) {
	all := map[string]bool{}
	for _, m := range maps {
		for k := range m {
			all[k] = true
		}
	}
	return func(yield func(string) bool) {
		for k := range all {
			if !yield(k) {
				return
			}
		}
	}
}

func provider(t testing.TB, o cloudcache.Options) *cloudcache.Provider {
	t.Helper()
	return must(cloudcache.New(o))
}

// must returns a value that is there, since its error would be one of the test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
