package doctor_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/doctor"
)

// fake is a stand-in for a server of one kind: scripted answers and no model. Its prefix cache counts blocks of equal
// words, as the engine's does. The zero value of its faults is a server that is set up well.
type fake struct {
	kind  doctor.Kind
	block int // tokens of a block
	step  int // tokens that are reused at a time; 0: block
	pub   *publisher
	other *publisher // of rank 1, which takes every other prompt; nil: there is none

	// faults
	sick, refuses, noDetails, noCache, wholeOnly, noUsage, noStreamUsage, otherIDs bool
	noMetrics, noCounters, noTokenizer, otherTokenizer, clockInTemplate, noModels  bool
	replicas                                                                       int
	skew                                                                           time.Duration
	window                                                                         int
	slots                                                                          int
	hideSlots, noHostCache, shifts, windows                                        bool
	slotDir                                                                        string // llama.cpp saves slots there
	sources                                                                        string // of /kv_event_sources
	noSchema, noSalts, freshSalts, oneSalt, sparse                                 bool   // salts are left out, new each time, or all the same

	mu      sync.Mutex
	chats   int
	asked   int // tokenizer
	hits    int
	tokens  int        // of all prompts
	prompts [][]uint32 // that are cached
	salted  []string   // their salts
	points  [][]uint32 // beginnings of prompts, whose last states are kept
	bodies  []string
	slot    []uint32 // what /completion has read
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Date", time.Now().Add(f.skew).UTC().Format(http.TimeFormat))
	if f.refuses && r.Header.Get("Authorization") != "Bearer secret" {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	handler := map[string]func(http.ResponseWriter, []byte){
		"GET /health": f.health, "GET /v1/models": f.models, "POST /v1/chat/completions": f.chat, "GET /metrics": f.metrics,
	}
	own := map[doctor.Kind]map[string]func(http.ResponseWriter, []byte){
		doctor.VLLM: {
			"GET /version":          text(`{"version":"0.32.0"}`),
			"GET /kv_event_sources": text(f.sources),
			"POST /tokenize":        f.tokenize,
			"GET /openapi.json":     f.schema,
		},
		doctor.SGLang: {
			"GET /server_info": f.info, "POST /tokenize": f.tokenize, "POST /v1/tokenize": f.tokenize,
		},
		doctor.LlamaCPP: {
			"GET /props": f.props, "POST /tokenize": f.tokenize, "POST /apply-template": f.template, "GET /slots": text("[]"),
			"GET /lora-adapters": text("[]"), "POST /slots/0": f.act, "POST /completion": f.completion,
		},
	}
	h := handler[r.Method+" "+r.URL.Path]
	if h == nil {
		h = own[f.kind][r.Method+" "+r.URL.Path]
	}
	if h == nil {
		http.NotFound(w, r)
		return
	}
	if r.Header.Get("X-Request-Id") != "" {
		body = append(body, '\n')
		body = append(body, r.Header.Get("X-Request-Id")...)
	}
	h(w, body)
}

// act saves, erases and restores the only thing that is ever in its slot, whatever the action.
func (f *fake) act(w http.ResponseWriter, body []byte) {
	var action struct{ Filename string }
	_ = json.Unmarshal(bytes.SplitN(body, []byte("\n"), 2)[0], &action)
	if f.slotDir == "" {
		w.WriteHeader(http.StatusNotImplemented)
		_, _ = io.WriteString(w, `{"error":{"message":"Start it with --slot-save-path"}}`)
		return
	}
	if action.Filename != "" {
		_ = os.WriteFile(filepath.Join(f.slotDir, action.Filename), []byte("keys"), 0o600)
	}
	_, _ = io.WriteString(w, `{"n_saved":9,"n_written":4,"n_restored":9}`)
}

// completion says that a prompt's beginning is cached as far as the one before had it, unless restored slots are not used.
func (f *fake) completion(w http.ResponseWriter, body []byte) {
	var c struct{ Prompt []uint32 }
	_ = json.Unmarshal(bytes.SplitN(body, []byte("\n"), 2)[0], &c)
	n := 0
	for !f.windows && n < len(f.slot) && n < len(c.Prompt) && f.slot[n] == c.Prompt[n] {
		n++
	}
	f.slot = c.Prompt
	fmt.Fprintf(w, `{"timings":{"cache_n":%d}}`, n)
}

func text(s string) func(http.ResponseWriter, []byte) {
	return func(w http.ResponseWriter, _ []byte) {
		if s == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, s)
	}
}

func (f *fake) health(w http.ResponseWriter, _ []byte) {
	if f.sick {
		http.Error(w, "loading", http.StatusServiceUnavailable)
	}
}

func (f *fake) models(w http.ResponseWriter, _ []byte) {
	if f.noModels {
		_, _ = io.WriteString(w, `{"data":[]}`)
		return
	}
	fmt.Fprintf(w, `{"data":[{"id":"tiny","owned_by":%q,"max_model_len":%d}]}`, f.kind, f.window)
}

func (f *fake) metrics(w http.ResponseWriter, _ []byte) {
	if f.noMetrics || f.kind == doctor.Other {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if f.noCounters {
		_, _ = io.WriteString(w, "# TYPE http_requests_total counter\nhttp_requests_total 1\n")
		return
	}
	switch f.kind {
	case doctor.VLLM:
		caching := "True"
		if f.noCache {
			caching = "False"
		}
		fmt.Fprintf(w, "# TYPE vllm:cache_config_info "+
			"gauge\nvllm:cache_config_info{block_size=\"%d\",enable_prefix_caching=%q,num_gpu_blocks=\"1000\"} 1\n", f.block, caching)
		fmt.Fprintf(w, "# TYPE vllm:prefix_cache_hits_total counter\nvllm:prefix_cache_hits_total{engine=\"0\"} %d\n", f.hits)
		fmt.Fprintf(w, "# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{engine=\"0\"} %d\n", f.tokens)
	case doctor.SGLang:
		fmt.Fprintf(w, "# TYPE sglang:cached_tokens_total counter\nsglang:cached_tokens_total %d\n", f.hits)
		fmt.Fprintf(w, "# TYPE sglang:prompt_tokens_total counter\nsglang:prompt_tokens_total %d\n", f.tokens)
	case doctor.LlamaCPP:
		fmt.Fprintf(w, "llamacpp:prompt_tokens_cached_total %d\nllamacpp:prompt_tokens_total %d\n", f.hits, f.tokens-f.hits)
	}
}

func (f *fake) schema(w http.ResponseWriter, _ []byte) {
	if f.noSchema {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = io.WriteString(w, `{"paths":{},"components":{"schemas":{"ChatCompletionRequest":{"properties":{"cache_salt":{}}}}}}`)
}

func (f *fake) info(w http.ResponseWriter, _ []byte) {
	events := ""
	if f.sources != "" {
		events = `,"kv_events":` + f.sources
	}
	fmt.Fprintf(w, `{"version":"0.5.23","page_size":%d,"max_total_num_tokens":100000,"enable_cache_report":%v,"disable_radix_cache":%v%s}`,
		f.block, !f.noDetails, f.noCache, events)
}

func (f *fake) props(w http.ResponseWriter, _ []byte) {
	fmt.Fprintf(w, `{"total_slots":%d,"model_path":"m.gguf","build_info":"b9999","endpoint_slots":%v,"endpoint_metrics":true,`+
		`"default_generation_settings":{"n_ctx":%d}}`, f.slots, !f.hideSlots, f.window)
}

// words are the fake's tokens: a word each, so that equal texts have equal tokens. Their number is near that of the estimate.
func words(s string) []uint32 {
	var tokens []uint32
	for i := 0; i < len(s); i += 4 {
		var b [4]byte
		copy(b[:], s[i:])
		tokens = append(tokens, binary.BigEndian.Uint32(b[:])>>1)
	}
	return tokens
}

type chat struct {
	Model    string
	Stream   bool
	Slot     *int   `json:"id_slot"`
	Salt     string `json:"cache_salt"`
	Messages []struct{ Role, Content string }
}

func (c *chat) text(front string) string {
	all := ""
	for _, m := range c.Messages {
		all += m.Content
	}
	return front + "<|user|>" + all + strings.Repeat(" ", 3-(len(all)+3)%4) + "<|assistant|>"
}

func (f *fake) front() string {
	if f.clockInTemplate {
		f.asked++
		return fmt.Sprintf("%-8d", f.asked)
	}
	return "head    "
}

func (f *fake) template(w http.ResponseWriter, body []byte) {
	var c chat
	_ = json.Unmarshal(body, &c)
	_ = json.NewEncoder(w).Encode(map[string]string{"prompt": c.text(f.front())})
}

func (f *fake) tokenize(w http.ResponseWriter, body []byte) {
	if f.noTokenizer {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var q struct {
		Prompt, Content string
		chat
	}
	_ = json.Unmarshal(body, &q)
	s := q.Prompt + q.Content
	if q.Messages != nil {
		s = q.text(f.front())
	}
	if f.otherTokenizer {
		s += s
	}
	tokens, _ := json.Marshal(words(s))
	fmt.Fprintf(w, `{"count":%d,"tokens":%s}`, len(words(s)), tokens)
}

func (f *fake) chat(w http.ResponseWriter, body []byte) {
	raw, id, _ := bytes.Cut(body, []byte("\n"))
	var c chat
	var ids struct {
		Request string `json:"request_id"`
	}
	if json.Unmarshal(raw, &c) != nil || json.Unmarshal(raw, &ids) != nil || c.Model != "" && c.Model != "tiny" {
		http.Error(w, `{"error":{"message":"no such model"}}`, http.StatusBadRequest)
		return
	}
	f.chats++
	f.bodies = append(f.bodies, c.text(""))
	tokens := words(c.text(f.front()))
	if f.noSalts {
		c.Salt = ""
	} else if f.freshSalts && c.Salt != "" {
		c.Salt += fmt.Sprint(f.chats)
	} else if f.oneSalt && c.Salt != "" {
		c.Salt = "one"
	}
	cached := f.cached(tokens, c.Slot, c.Salt)
	f.hits += cached
	f.tokens += len(tokens)
	f.prompts, f.salted = append(f.prompts, tokens), append(f.salted, c.Salt)
	if pub := f.pub; pub != nil && !f.noCache {
		if f.other != nil && f.chats%2 == 0 {
			pub = f.other
		}
		pub.stored(tokens, f.block)
	}
	answer := cmp.Or(string(id), ids.Request)
	if f.kind == doctor.VLLM || f.kind == doctor.Other {
		answer = "chatcmpl-" + answer
	}
	if f.otherIDs || f.kind == doctor.LlamaCPP {
		answer = fmt.Sprintf("chatcmpl-%032d", f.chats)
	}
	details := ""
	if !f.noDetails {
		details = fmt.Sprintf(`,"prompt_tokens_details":{"cached_tokens":%d}`, cached)
	}
	usage := fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":1%s}`, len(tokens), details)
	if f.noUsage || f.noStreamUsage && c.Stream {
		usage = ""
	}
	if !c.Stream {
		fmt.Fprintf(w, `{"id":%q,"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"length"}]%s}`, answer, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"id\":%q,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"length\"}]}\n\n", answer)
	if usage != "" {
		fmt.Fprintf(w, "data: {\"id\":%q,\"choices\":[]%s}\n\n", answer, usage)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// cached is what the engine's rules take from earlier prompts: whole blocks, and never the last token.
func (f *fake) cached(tokens []uint32, slot *int, salt string) int {
	if f.noCache {
		return 0
	}
	if f.sparse {
		return f.atPoints(tokens, salt)
	}
	if f.kind == doctor.LlamaCPP && slot != nil && f.shifts && f.chats%2 == 0 {
		return len(tokens) * 3 / 4
	}
	from := 0
	if f.kind == doctor.LlamaCPP && f.noHostCache {
		from = max(len(f.prompts)-f.slots, 0)
	}
	best := 0
	for i, p := range f.prompts[from:] {
		if f.salted[from+i] != salt {
			continue
		}
		if f.replicas > 1 && i%f.replicas != (f.chats-1)%f.replicas {
			continue
		}
		n := 0
		for n < len(p) && n < len(tokens)-1 && p[n] == tokens[n] {
			n++
		}
		if f.wholeOnly && n < len(tokens)-1 {
			n = 0
		}
		best = max(best, n)
	}
	step := max(cmp.Or(f.step, f.block), 1)
	return best / step * step
}

// atPoints is what an engine with sliding windows reuses: it goes on from where an earlier prompt ended, or parted from another one.
func (f *fake) atPoints(tokens []uint32, salt string) int {
	whole := func(n int) int { return n / f.block * f.block }
	best, parted := 0, 0
	for i, p := range f.prompts {
		n := 0
		for f.salted[i] == salt && n < min(len(p), len(tokens)-1) && p[n] == tokens[n] {
			n++
		}
		parted = max(parted, whole(n))
	}
	for _, p := range f.points {
		if len(p) <= parted && slices.Equal(p, tokens[:len(p)]) {
			best = max(best, len(p))
		}
	}
	f.points = append(f.points, tokens[:whole(len(tokens)-1)], tokens[:parted])
	return best
}

// serve starts a fake.
func serve(t *testing.T, f *fake) string {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return server.URL
}
