package sidecar_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/testkit/kvfake"
)

// kvBlock is the length of the fake engine's blocks, in tokens; a token is a byte of the prompt.
const kvBlock = 16

// kvEngine stands in for a vLLM server that publishes cache events: it answers in vLLM 0.32's form, stores the blocks of each
// prompt, and evicts what a test asks for. It generates nothing.
type kvEngine struct {
	*httptest.Server
	events, replay string
	pub            *kvfake.Engine
	old            bool // a release that gives no tokens with answers
	four           bool // its usage counts a token for four bytes

	mu     sync.Mutex
	up     bool                // publishes
	ranks  string              // what it says of where it publishes; "": nothing
	bodies []string            // of chats and completions, as they came
	asked  int                 // times that the tokenizer was asked for a whole prompt
	hashes map[string]uint64   // by the bytes up to the block's end, and the salt
	prompt map[string][]uint64 // names of blocks, by a word of the prompt
}

// newKVEngine starts one. It publishes once publish was called.
func newKVEngine(t testing.TB) *kvEngine {
	dir := t.TempDir()
	e := &kvEngine{
		events: "ipc://" + filepath.Join(dir, "e"), replay: "ipc://" + filepath.Join(dir, "r"), pub: newPublisher(),
		hashes: map[string]uint64{}, prompt: map[string][]uint64{},
	}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

// publish opens the events.
func (e *kvEngine) publish(t testing.TB) {
	t.Helper()
	if err := e.pub.Start(e.events, e.replay); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.pub.Stop)
	e.mu.Lock()
	e.up = true
	e.mu.Unlock()
}

// stop ends the publisher, and what was stored is not reported any more.
func (e *kvEngine) stop() {
	e.mu.Lock()
	e.up = false
	e.mu.Unlock()
	e.pub.Stop()
}

func (e *kvEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch r.URL.Path {
	case "/health":
	case "/version":
		fmt.Fprint(w, `{"version":"0.32.0"}`)
	case "/openapi.json":
		member := `,"return_token_ids":{}`
		if e.old {
			member = ""
		}
		fmt.Fprintf(w, `{"paths":{"/tokenize":{}},"components":{"schemas":{"ChatCompletionRequest":{"properties":{"messages":{}%s}}}}}`, member)
	case "/v1/models":
		fmt.Fprint(w, `{"data":[{"id":"m","parent":null},{"id":"lora","parent":"m"}]}`)
	case "/metrics":
		fmt.Fprint(w, "process_start_time_seconds 1700000000.5\n")
	case "/kv_event_sources":
		e.mu.Lock()
		ranks := e.ranks
		e.mu.Unlock()
		if ranks == "" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, ranks)
	case "/tokenize":
		e.tokenize(w, body)
	case "/v1/chat/completions", "/v1/completions":
		e.generate(w, r, body)
	default:
		http.NotFound(w, r)
	}
}

// kvBody is the part of a body that the fake reads.
type kvBody struct {
	Model    string
	Messages []struct{ Content string }
	Prompt   string
	Stream   bool
	Salt     string `json:"cache_salt"`
	Tokens   bool   `json:"return_token_ids"`
}

func (b *kvBody) text() string {
	text := b.Prompt
	for _, m := range b.Messages {
		text += "<|" + m.Content + "|>"
	}
	return text
}

func numbersOf(text string) []int {
	out := make([]int, len(text))
	for i := range len(text) {
		out[i] = int(text[i])
	}
	return out
}

func (e *kvEngine) tokenize(w http.ResponseWriter, body []byte) {
	var b kvBody
	_ = json.Unmarshal(body, &b)
	if len(b.Messages) > 0 {
		e.mu.Lock()
		e.asked++
		e.mu.Unlock()
	}
	n := numbersOf(b.text())
	_ = json.NewEncoder(w).Encode(map[string]any{"count": len(n), "tokens": n})
}

// generate answers, and stores the prompt's blocks.
func (e *kvEngine) generate(w http.ResponseWriter, r *http.Request, body []byte) {
	var b kvBody
	if err := json.Unmarshal(body, &b); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	text := b.text()
	e.mu.Lock()
	e.bodies = append(e.bodies, string(body))
	e.mu.Unlock()
	e.store(text, b.Salt, b.Model)
	prompt, output := "null", "null"
	if b.Tokens {
		raw, _ := json.Marshal(numbersOf(text))
		prompt, output = string(raw), "[7]"
	}
	counted := len(text)
	if e.four {
		counted /= 4
	}
	usage := fmt.Sprintf(
		`{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":0}}`,
		counted,
		counted+1,
	)
	switch {
	case b.Stream:
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(
			w,
			"data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],"+
				"\"prompt_token_ids\":%s,\"prompt_text\":null}\n\n",
			prompt,
		)
		w.(http.Flusher).Flush()
		fmt.Fprintf(
			w,
			"data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\","+
				"\"token_ids\":%s}],\"usage\":%s}\n\ndata: [DONE]\n\n",
			output,
			usage,
		)
	case r.URL.Path == "/v1/completions":
		fmt.Fprintf(w, `{"id":"x","choices":[{"index":0,"text":"ok","token_ids":%s,"prompt_token_ids":%s}],"usage":%s}`, output, prompt, usage)
	default:
		fmt.Fprintf(
			w,
			`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"token_ids":%s}],"usage":%s,"prompt_token_ids":%s}`,
			output,
			usage,
			prompt,
		)
	}
}

// store publishes the blocks of a prompt that are not held.
func (e *kvEngine) store(text, salt, model string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []uint64
	var parent kvevents.Hash
	ev := kvevents.Event{Kind: kvevents.Stored, BlockSize: kvBlock, Salt: []byte(salt)}
	if model == "lora" {
		ev.LoRA = model
	}
	for end := kvBlock; end <= len(text); end += kvBlock {
		name := model + "\x00" + salt + "\x00" + text[:end]
		h, held := e.hashes[name]
		if !held {
			h = uint64(len(e.hashes) + 1)
			e.hashes[name] = h
			if len(ev.Hashes) == 0 {
				ev.Parent = parent
			}
			ev.Hashes, ev.Tokens = append(ev.Hashes, kvevents.Uint(h)), append(ev.Tokens, numbersOf(text[end-kvBlock:end])...)
		}
		parent = kvevents.Uint(h)
		all = append(all, h)
	}
	e.prompt[text] = all
	if len(ev.Hashes) > 0 && e.up {
		e.pub.Publish(kvfake.Payload(kvfake.Map, 1, 0, ev))
	}
}

// evict publishes that of the prompt with a word only the first blocks are left.
func (e *kvEngine) evict(t testing.TB, word string, left int) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for text, blocks := range e.prompt {
		if !strings.Contains(text, word) {
			continue
		}
		ev := kvevents.Event{Kind: kvevents.Removed}
		gone := map[uint64]bool{}
		for _, h := range blocks[left:] {
			ev.Hashes = append(ev.Hashes, kvevents.Uint(h))
			gone[h] = true
		}
		for name, h := range e.hashes {
			if gone[h] {
				delete(e.hashes, name)
				e.hashes[fmt.Sprint("gone ", h)] = h // its number is not given again
			}
		}
		e.prompt[text] = blocks[:left]
		e.pub.Publish(kvfake.Payload(kvfake.Map, 2, 0, ev))
		return
	}
	t.Fatalf("no prompt has the word %q", word)
}

// last returns the body that came last.
func (e *kvEngine) last() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bodies[len(e.bodies)-1]
}

func newPublisher() *kvfake.Engine { return &kvfake.Engine{Topic: "kv"} }
