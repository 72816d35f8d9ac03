package llamacpp_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// fake is a stand-in for llama-server: its slots and its endpoints, without a model. Words are tokens, and an answer is the
// words a0, a1, …. It is written as plainly as possible, because it judges the engine.
type fake struct {
	t       testing.TB
	URL     string
	address string
	handler http.Handler
	traits  traits

	server   *http.Server // changed by restart, like listener
	listener *breaking

	freed *sync.Cond // of mu

	mu        sync.Mutex
	ids       map[string]int // of words; guarded by mu, like all below
	words     []string
	process   int
	slots     []fakeSlot
	clock     int
	served    int
	down      int               // requests to refuse with 503
	full      bool              // its disk
	refuses   bool              // to restore slots
	breaks    bool              // connections, instead of restoring
	onRestore func()            // is called once, before a slot is restored
	mostBytes int64             // in its folder, while a file was saved
	restored  int               // slots, from files
	held      chan struct{}     // if not nil, answers wait for it after their first piece
	sequences map[string][]int  // what each request left in its slot, by its last message
	asked     []string          // paths
	bodies    []json.RawMessage // of chats
}

type fakeSlot struct {
	tokens   []int
	used     int
	busy     bool
	restored bool
	spoilt   bool // a file that was refused has left it so
}

// traits are how a fake differs from the release that the tests were written for.
type traits struct {
	slots        int
	noMarker     bool           // does not name its process
	noSlotsPage  bool           // was started with --no-slots
	noDetails    bool           // reports no tokens, slots and lengths
	hidden       func(int) bool // generated tokens that are not reported
	unlikeText   bool           // the answer's text has other tokens than were generated
	noTemplate   bool           // does not know /apply-template
	longerPrompt int            // tokens that only the chat endpoint adds
	noTokens     bool           // does not answer /tokenize
	slotDir      string         // was started with --slot-save-path
	forgetful    int            // does not use restored prompts with more tokens; 0: uses all
	adapters     string         // what it has of them
	window       int            // files have the keys and values of so many tokens; 0: of all
	model        string         // empty: fake.gguf
	noCompletion bool           // has no count of what is cached at /completion
	clears       bool           // empties idle slots when a request starts
}

func startFake(t testing.TB, traits traits) *fake {
	f := &fake{t: t, traits: traits, ids: map[string]int{}, sequences: map[string][]int{}, slots: make([]fakeSlot, traits.slots), process: 1}
	f.freed = sync.NewCond(&f.mu)
	mux := http.NewServeMux()
	for path, handler := range map[string]http.HandlerFunc{
		"/health": f.health, "/props": f.props, "/slots": f.slotsPage, "/metrics": f.metrics,
		"/tokenize": f.tokenizePage, "/apply-template": f.templatePage, "/v1/chat/completions": f.chat,
		"/slots/{id}": f.act, "/completion": f.completion, "/lora-adapters": f.adapters,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			f.asked = append(f.asked, path)
			down := f.down > 0
			f.down = max(0, f.down-1)
			f.mu.Unlock()
			if down {
				fail(w, http.StatusServiceUnavailable, "Loading model")
				return
			}
			handler(w, r)
		})
	}
	f.handler = mux
	f.address = testkit.FreeAddress(t)
	f.start()
	f.URL = "http://" + f.address
	t.Cleanup(f.stop)
	return f
}

// start listens at the fake's address. Only a listener that is closed and opened again breaks connections as a new process
// does: also those that it has not accepted.
func (f *fake) start() {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", f.address)
	if err != nil {
		panic(err)
	}
	f.listener = &breaking{Listener: listener}
	// A request that the process before had accepted dies with it.
	process := context.WithValue(context.Background(), fakeProcess{}, f.process)
	f.server = &http.Server{Handler: f.handler, BaseContext: func(net.Listener) context.Context { return process }}
	go func(s *http.Server, l net.Listener) { _ = s.Serve(l) }(f.server, f.listener)
}

func (f *fake) stop() {
	f.listener.breakAll()
	_ = f.server.Close()
}

type fakeProcess struct{}

// breaking is a listener that can close all it has accepted; http.Server leaves out what it is accepting just then.
type breaking struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
	done  bool
}

func (b *breaking) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns = append(b.conns, c)
	if b.done {
		c.Close()
	}
	return c, nil
}

func (b *breaking) breakAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = true
	b.Close()
	for _, c := range b.conns {
		c.Close()
	}
}

func fail(w http.ResponseWriter, code int, message string) {
	w.WriteHeader(code)
	reply(w, map[string]any{"error": map[string]any{"code": code, "message": message}})
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// engine returns an engine for the fake, and what it predicts and reports. With a folder for slots its clock stands still: what files take
// on this machine, beside what the fake says that a prompt takes, would decide which are written and read.
func (f *fake) engine(change func(*llamacpp.Config)) (*llamacpp.Engine, *ledger) {
	f.t.Helper()
	l := &ledger{predicted: map[string]llamacpp.Prediction{}, resident: map[string]int{}}
	config := llamacpp.Config{Server: openai.Config{BaseURL: f.URL + "/v1", RetryWait: 1, MaxRetryWait: 1}, OnPredict: l.predict}
	if change != nil {
		change(&config)
	}
	if config.SlotDir != "" && config.Server.Now == nil {
		now := time.Now()
		config.Server.Now = func() time.Time { return now }
	}
	engine, err := llamacpp.New(config)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = engine.Close() })
	engine.Subscribe(l.observe)
	return engine, l
}

// restart forgets everything and breaks all connections, as a new process would.
func (f *fake) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop() // nothing is answered meanwhile
	f.process++
	f.slots = make([]fakeSlot, len(f.slots))
	f.freed.Broadcast()
	f.start()
}

func (f *fake) health(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]any{"status": "ok"})
}

func (f *fake) metrics(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, "# TYPE llamacpp:prompt_tokens_cached_total counter\nllamacpp:prompt_tokens_cached_total 12\n")
}

func (f *fake) props(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	props := map[string]any{
		"total_slots": len(f.slots), "model_path": cmp.Or(f.traits.model, "fake.gguf"), "model_alias": "fake",
		"endpoint_slots":              !f.traits.noSlotsPage,
		"default_generation_settings": map[string]any{"n_ctx": 4096},
	}
	if !f.traits.noMarker {
		props["media_marker"] = fmt.Sprintf("<__media_%d__>", f.process)
	}
	reply(w, props)
}

func (f *fake) slotsPage(w http.ResponseWriter, _ *http.Request) {
	if f.traits.noSlotsPage {
		fail(w, http.StatusNotImplemented, "This server does not support slots endpoint.")
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	page := []map[string]any{}
	for i, s := range f.slots {
		page = append(page, map[string]any{"id": i, "is_processing": s.busy, "n_prompt_tokens": len(s.tokens)})
	}
	reply(w, page)
}

// tokenize returns the words' numbers. It is called with mu held.
func (f *fake) tokenize(text string) []int {
	tokens := []int{}
	for word := range strings.FieldsSeq(text) {
		id, ok := f.ids[word]
		if !ok {
			id = len(f.words)
			f.ids[word], f.words = id, append(f.words, word)
		}
		tokens = append(tokens, id)
	}
	return tokens
}

type fakeBody struct {
	Content  string `json:"content"`
	Messages []struct{ Role, Content string }
	Max      int   `json:"max_tokens"`
	Slot     *int  `json:"id_slot"`
	Reuse    *bool `json:"cache_prompt"`
}

func (b fakeBody) text() string {
	var text strings.Builder
	for _, m := range b.Messages {
		fmt.Fprintf(&text, "<%s> %s ", m.Role, m.Content)
	}
	return text.String() + "<assistant>"
}

func (f *fake) read(r *http.Request) (b fakeBody, raw json.RawMessage) {
	_ = json.NewDecoder(r.Body).Decode(&raw)
	_ = json.Unmarshal(raw, &b)
	return b, raw
}

func (f *fake) tokenizePage(w http.ResponseWriter, r *http.Request) {
	b, _ := f.read(r)
	if f.traits.noTokens {
		<-r.Context().Done()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	reply(w, map[string]any{"tokens": f.tokenize(b.Content)})
}

func (f *fake) templatePage(w http.ResponseWriter, r *http.Request) {
	if f.traits.noTemplate {
		fail(w, http.StatusNotFound, "File Not Found")
		return
	}
	b, _ := f.read(r)
	reply(w, map[string]any{"prompt": b.text()})
}

// pick is the server's rule. It is called with mu held and returns -1 if no slot is free.
func (f *fake) pick(wanted *int, prompt []int) int {
	if wanted != nil {
		if i := *wanted % len(f.slots); !f.slots[i].busy {
			return i
		}
		return -1
	}
	best, share := -1, 0.1
	for i, s := range f.slots {
		if part := float64(same(s.tokens, prompt)) / float64(len(prompt)); !s.busy && part > share {
			best, share = i, part
		}
	}
	if best < 0 {
		for i, s := range f.slots {
			if !s.busy && (best < 0 || s.used <= f.slots[best].used) {
				best = i
			}
		}
	}
	return best
}

// cached is how much of a prompt a slot spares.
func (f *fake) cached(s *fakeSlot, prompt []int) int {
	forgetful, n := f.traits.forgetful, min(same(s.tokens, prompt), len(prompt)-1)
	if s.spoilt && n > 0 {
		f.t.Errorf("%d tokens of a spoilt slot are used", n)
	}
	if s.restored && forgetful > 0 && len(s.tokens) > forgetful {
		return 0
	}
	return n
}

// fileBytes is what tokens take in a file.
func (f *fake) fileBytes(tokens int) int {
	if f.traits.window > 0 {
		tokens = min(tokens, f.traits.window)
	}
	return 1000 * tokens
}

// act saves, restores and erases slots. What is in a file it believes: it is the engine that must look first.
func (f *fake) act(w http.ResponseWriter, r *http.Request) {
	action := r.URL.Query().Get("action")
	f.mu.Lock()
	hook := f.onRestore
	if action == "restore" {
		f.onRestore = nil
	}
	f.mu.Unlock()
	if action == "restore" && hook != nil {
		hook()
	}
	f.mu.Lock()
	if f.process != r.Context().Value(fakeProcess{}).(int) || f.breaks && action == "restore" {
		f.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	defer f.mu.Unlock()
	id, err := strconv.Atoi(r.PathValue("id"))
	if f.traits.slotDir == "" || err != nil || id >= len(f.slots) {
		fail(w, http.StatusNotImplemented, "This server does not support slots action. Start it with `--slot-save-path`")
		return
	}
	var body struct{ Filename string }
	_ = json.NewDecoder(r.Body).Decode(&body)
	file, s := filepath.Join(f.traits.slotDir, body.Filename), &f.slots[id]
	switch action {
	case "save":
		data, _ := json.Marshal(s.tokens)
		data = append(data, bytes.Repeat([]byte{' '}, max(0, f.fileBytes(len(s.tokens))-len(data)))...)
		if f.full {
			data = data[:len(data)/2]
		}
		err := os.WriteFile(file, data, 0o644)
		_, size := slotFiles(f.t, f.traits.slotDir)
		f.mostBytes = max(f.mostBytes, size)
		if err != nil || f.full {
			fail(w, http.StatusInternalServerError, "Unable to save slot")
			return
		}
		reply(w, map[string]any{"n_saved": len(s.tokens), "n_written": len(data)})
	case "restore":
		f.restored++
		data, err := os.ReadFile(file)
		s.tokens = nil
		if err == nil {
			err = json.Unmarshal(data, &s.tokens)
		}
		if s.spoilt = err != nil || f.refuses; s.spoilt {
			fail(w, http.StatusBadRequest, "Unable to restore slot")
			return
		}
		s.restored = true
		reply(w, map[string]any{"n_restored": len(s.tokens)})
	case "erase":
		n := len(s.tokens)
		s.tokens, s.restored, s.spoilt = nil, false, false
		reply(w, map[string]any{"n_erased": n})
	}
}

func (f *fake) adapters(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, cmp.Or(f.traits.adapters, "[]"))
}

// completion reads a prompt of tokens. Its answer has one token, which is not read.
func (f *fake) completion(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Prompt []int
		Slot   int `json:"id_slot"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.slots[body.Slot]
	cached := f.cached(s, body.Prompt)
	s.tokens, s.restored, s.spoilt = body.Prompt, false, false
	if f.traits.noCompletion {
		reply(w, map[string]any{})
		return
	}
	reply(w, map[string]any{
		"content": "yes", "tokens": []int{1}, "id_slot": body.Slot, "stop_type": "limit", "tokens_evaluated": len(body.Prompt),
		"tokens_predicted": 1,
		"tokens_cached":    len(body.Prompt), "timings": map[string]any{"cache_n": cached},
	})
}

// restores returns how often slots were restored.
func (f *fake) restores() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.restored
}
