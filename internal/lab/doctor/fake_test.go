package doctor_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/tinylib/msgp/msgp"

	"github.com/ragpilot/ragpilot/internal/lab/doctor"
	"github.com/ragpilot/ragpilot/internal/testkit"
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
	noMetrics, noTokenizer, otherTokenizer, clockInTemplate, noModels              bool
	replicas                                                                       int
	skew                                                                           time.Duration
	window                                                                         int
	slots                                                                          int
	hideSlots, noHostCache, shifts, windows                                        bool
	slotDir                                                                        string // llama.cpp saves slots there
	sources                                                                        string // of /kv_event_sources

	mu      sync.Mutex
	chats   int
	asked   int // tokenizer
	hits    int
	prompts [][]uint32 // that are cached
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
	switch f.kind {
	case doctor.VLLM:
		caching := "True"
		if f.noCache {
			caching = "False"
		}
		fmt.Fprintf(w, "# TYPE vllm:cache_config_info "+
			"gauge\nvllm:cache_config_info{block_size=\"%d\",enable_prefix_caching=%q,num_gpu_blocks=\"1000\"} 1\n", f.block, caching)
		fmt.Fprintf(w, "# TYPE vllm:prefix_cache_hits_total counter\nvllm:prefix_cache_hits_total{engine=\"0\"} %d\n", f.hits)
	case doctor.SGLang:
		fmt.Fprintf(w, "# TYPE sglang:cached_tokens_total counter\nsglang:cached_tokens_total %d\n", f.hits)
	case doctor.LlamaCPP:
		fmt.Fprintf(w, "llamacpp:prompt_tokens_cached_total %d\n", f.hits)
	}
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
	Slot     *int `json:"id_slot"`
	Messages []struct{ Role, Content string }
}

func (c *chat) text(front string) string {
	return front + "<|user|>" + c.Messages[0].Content + strings.Repeat(" ", 3-(len(c.Messages[0].Content)+3)%4) + "<|assistant|>"
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
	f.bodies = append(f.bodies, c.Messages[0].Content)
	tokens := words(c.text(f.front()))
	cached := f.cached(tokens, c.Slot)
	f.hits += cached
	f.prompts = append(f.prompts, tokens)
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
func (f *fake) cached(tokens []uint32, slot *int) int {
	if f.noCache {
		return 0
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

// publisher is a stand-in for an engine's event publisher, over real ZeroMQ sockets.
type publisher struct {
	t       *testing.T
	pub     zmq4.Socket
	mu      sync.Mutex
	batches [][]byte
	hashes  uint64
	garbage bool
	foreign bool
	mute    bool // nothing is sent, though it is kept for replay
}

func freeTCP(t *testing.T) string {
	t.Helper()
	return "tcp://" + testkit.FreeAddress(t)
}

// publish starts a publisher. With connects it dials events instead of listening there; without replay it has no past.
func publish(t *testing.T, events, replay string, connects bool) *publisher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	quiet := zmq4.WithLogger(log.New(io.Discard, "", 0))
	p := &publisher{t: t, pub: zmq4.NewPub(ctx, quiet)}
	if !connects {
		if err := p.pub.Listen(events); err != nil {
			t.Fatal(err)
		}
	}
	var router zmq4.Socket
	var answering sync.WaitGroup
	if replay != "" {
		router = zmq4.NewRouter(ctx, quiet)
		if err := router.Listen(replay); err != nil {
			t.Fatal(err)
		}
		answering.Go(func() { p.answer(router) })
	}
	t.Cleanup(func() {
		cancel()
		_ = p.pub.Close()
		if router != nil {
			_ = router.Close()
		}
		answering.Wait()
	})
	return p
}

func (p *publisher) answer(router zmq4.Socket) {
	for {
		msg, err := router.Recv()
		if err != nil {
			return
		}
		if len(msg.Frames) != 3 {
			continue
		}
		from := binary.BigEndian.Uint64(msg.Frames[2])
		p.mu.Lock()
		batches := p.batches
		p.mu.Unlock()
		for i := int(from); i < len(batches); i++ {
			_ = router.Send(zmq4.NewMsgFrom(msg.Frames[0], nil, nil, binary.BigEndian.AppendUint64(nil, uint64(i)), batches[i]))
		}
		_ = router.Send(zmq4.NewMsgFrom(msg.Frames[0], nil, nil, bytes.Repeat([]byte{0xff}, 8), nil))
	}
}

// stored publishes that the blocks of a prompt were stored.
func (p *publisher) stored(tokens []uint32, block int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(tokens) / block
	b := msgp.AppendArrayHeader(nil, 3)
	b = msgp.AppendFloat64(b, 1000)
	b = msgp.AppendArrayHeader(b, 1)
	b = msgp.AppendMapHeader(b, 5)
	b = msgp.AppendString(msgp.AppendString(b, "type"), "BlockStored")
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "block_hashes"), uint32(n))
	for range n {
		p.hashes++
		b = msgp.AppendUint64(b, p.hashes)
	}
	b = msgp.AppendNil(msgp.AppendString(b, "parent_block_hash"))
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "token_ids"), uint32(n*block))
	for _, token := range tokens[:n*block] {
		if p.foreign {
			token++
		}
		b = msgp.AppendInt(b, int(token))
	}
	b = msgp.AppendInt(msgp.AppendString(b, "block_size"), block)
	b = msgp.AppendInt(b, 0)
	if p.garbage {
		b = []byte{0xc1}
	}
	seq := uint64(len(p.batches))
	p.batches = append(p.batches, b)
	if !p.mute {
		_ = p.pub.Send(zmq4.NewMsgFrom([]byte("kv@fake"), binary.BigEndian.AppendUint64(nil, seq), b))
	}
}

// serve starts a fake.
func serve(t *testing.T, f *fake) string {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return server.URL
}
