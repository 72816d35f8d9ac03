package ragpilottest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/prefixdiff"
)

// Recorder is a fake of a model's server. It keeps the requests in the order in which they arrive. It is safe for concurrent use.
type Recorder struct {
	server *httptest.Server
	config config

	mu       sync.Mutex
	index    *prefixdiff.Index
	requests []Request
	problems []error
}

// Request is a recorded request.
type Request struct {
	Number       int // from 1
	Method, Path string
	Body         []byte
	Prompt       prefixdiff.Prompt
	Tokens       int // of the prompt, estimated
	Common       int // of them: in the longest common prefix with an earlier request
	// Finding says where and why the request has less in common with earlier ones than it could have; nil: it has not.
	// Its numbers of requests begin at 0.
	Finding *prefixdiff.Finding
}

// NewRecorder starts a recorder on the loopback address. It ends with the test.
func NewRecorder(t testing.TB, opts ...Option) *Recorder {
	t.Helper()
	rec, err := newRecorder(t, opts)
	if err != nil {
		t.Fatalf("ragpilottest: %v", err)
	}
	return rec
}

func newRecorder(t testing.TB, opts []Option) (*Recorder, error) {
	index, err := prefixdiff.New(prefixdiff.Config{MaxBytes: 1 << 30, KeepTexts: true})
	if err != nil {
		return nil, err
	}
	rec := &Recorder{index: index}
	for _, o := range opts {
		if err := o(&rec.config); err != nil {
			return nil, err
		}
	}
	rec.server = httptest.NewServer(rec)
	t.Cleanup(rec.server.Close)
	return rec, nil
}

// URL is the address of the recorder, http://127.0.0.1:PORT. OpenAI's clients take it with /v1, those of Anthropic and Gemini as it is.
func (rec *Recorder) URL() string { return rec.server.URL }

// Transport returns a transport that hands all requests to the recorder, whatever their address, for clients whose base URL cannot be
// changed.
func (rec *Recorder) Transport() http.RoundTripper { return transport{rec} }

// Client returns a client with [Recorder.Transport].
func (rec *Recorder) Client() *http.Client { return &http.Client{Transport: rec.Transport()} }

// Add records the body of a request that does not come over HTTP, in one of the shapes that [prefixdiff.Parse] reads.
func (rec *Recorder) Add(body []byte) error {
	body = slices.Clone(body)
	p, err := prefixdiff.Parse(body)
	if err != nil {
		return err
	}
	rec.record(&Request{Body: body, Prompt: p})
	return nil
}

// AddPrompt records a prompt of a framework that sends no request.
func (rec *Recorder) AddPrompt(p prefixdiff.Prompt) { rec.record(&Request{Prompt: p}) }

// AddText records a prompt that is one text.
func (rec *Recorder) AddText(text string) { rec.AddPrompt(prefixdiff.FromText(text)) }

// Requests returns what was recorded.
func (rec *Recorder) Requests() []Request {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return slices.Clone(rec.requests)
}

// record compares a request with the earlier ones and keeps it.
func (rec *Recorder) record(r *Request) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	entry := rec.index.Prepare(r.Prompt)
	r.Number = entry.Insert() + 1
	if f, ok := entry.Explain(); ok {
		r.Finding = &f
	}
	r.Tokens, r.Common = r.Prompt.Tokens(), entry.Common()
	rec.requests = append(rec.requests, *r)
	if r.Prompt.Partial {
		rec.problems = append(rec.problems, fmt.Errorf(
			"request %d has only a part of its prompt: the rest is stored at the provider (previous_response_id, conversation, cachedContent)",
			r.Number))
	}
}

// problem keeps what the test must know, and returns the answer that the client gets.
func (rec *Recorder) problem(status int, format string, args ...any) *response {
	err := fmt.Errorf(format, args...)
	rec.mu.Lock()
	rec.problems = append(rec.problems, err)
	rec.mu.Unlock()
	return failure(status, err.Error())
}

// ServeHTTP records a request and answers it.
func (rec *Recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := rec.serve(r)
	w.Header().Set("Content-Type", a.kind())
	w.WriteHeader(a.code())
	_, _ = w.Write(a.data.Bytes()) // a client that has gone needs no answer
}

// transport is a recorder in place of a network.
type transport struct{ rec *Recorder }

// RoundTrip records a request and answers it.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	defer r.Body.Close()
	a := t.rec.serve(r)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.code(), http.StatusText(a.code())), StatusCode: a.code(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {a.kind()}}, Body: io.NopCloser(&a.data), ContentLength: int64(a.data.Len()), Request: r,
	}, nil
}

// maxBody bounds a body in bytes.
const maxBody = 256 << 20

// serve answers a request by its path.
func (rec *Recorder) serve(r *http.Request) *response {
	path := strings.TrimSuffix(r.URL.Path, "/")
	if r.Method == http.MethodGet && strings.HasSuffix(path, "/models") {
		model := object{"id": "recorder", "object": "model", "created": created, "owned_by": "ragpilot"}
		return whole200(object{"object": "list", "data": []object{model}})
	}
	if r.Method != http.MethodPost {
		return failure(http.StatusMethodNotAllowed, r.Method+" "+path+": the recorder answers POST")
	}
	render := route(path, r.URL.Query().Get("alt") == "sse")
	if render == nil {
		return rec.problem(http.StatusNotFound, "POST %s: the recorder answers paths that end in %s", path, strings.Join(paths[:], ", "))
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil || len(body) > maxBody {
		return rec.problem(http.StatusBadRequest, "POST %s: the body could not be read, or has more than %d bytes: %v", path, maxBody, err)
	}
	p, err := prefixdiff.Parse(body)
	if err != nil {
		return rec.problem(http.StatusBadRequest, "POST %s: %v", path, err)
	}
	var head struct {
		Model  string
		Stream bool
		Usage  struct {
			Include bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return rec.problem(http.StatusBadRequest, "POST %s: %v", path, err)
	}
	if model := geminiModel(path); model != "" {
		head.Model = model
		p.Parts = slices.Insert(p.Parts, 0, prefixdiff.Part{
			Path: "model", Kind: prefixdiff.Setting, Role: prefixdiff.System, Turn: prefixdiff.Front, Text: model,
		})
	}
	q := &Request{Method: r.Method, Path: path, Body: body, Prompt: p}
	rec.record(q)
	text, calls, err := rec.config.answer(*q).prepare(callsIn(p))
	if err != nil {
		return rec.problem(http.StatusInternalServerError, "request %d: %v", q.Number, err)
	}
	a := &reply{Request: *q, model: head.Model, text: text, calls: calls}
	a.output = a.count()
	return render(a, head.Stream, head.Usage.Include)
}

// id returns an identifier that is the same in each run of the test.
func (r *reply) id(prefix string) string { return fmt.Sprintf("%s_%d", prefix, r.Number) }

// callsIn counts the calls of tools in a conversation.
func callsIn(p prefixdiff.Prompt) int {
	n := 0
	for i := range p.Parts {
		if part := &p.Parts[i]; part.Kind == prefixdiff.Name && part.Role == prefixdiff.Assistant {
			n++
		}
	}
	return n
}

// paths are the ends of the paths that the recorder answers.
var paths = [...]string{"/chat/completions", "/completions", "/responses", "/messages", ":generateContent", ":streamGenerateContent"}

// route returns what writes the answer to a path; nil: nothing does.
func route(path string, events bool) func(r *reply, stream, usage bool) *response {
	for _, end := range paths {
		if !strings.HasSuffix(path, end) {
			continue
		}
		switch end {
		case "/chat/completions":
			return (*reply).chat
		case "/completions":
			return (*reply).completion
		case "/responses":
			return func(r *reply, stream, _ bool) *response { return r.responses(stream) }
		case "/messages":
			return func(r *reply, stream, _ bool) *response { return r.messages(stream) }
		default:
			return func(r *reply, _, _ bool) *response { return r.generate(end == ":streamGenerateContent", events) }
		}
	}
	return nil
}

// geminiModel returns the model that Gemini's paths name, or "".
func geminiModel(path string) string {
	name, method, ok := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ":")
	if !ok || method == "" {
		return ""
	}
	return name
}

// response is an answer over HTTP.
type response struct {
	status int // 0: 200
	whole  bool
	data   bytes.Buffer
}

func (a *response) code() int { return max(a.status, http.StatusOK) }

func (a *response) kind() string {
	if a.whole {
		return "application/json"
	}
	return "text/event-stream; charset=utf-8"
}

// whole200 is an answer that is not streamed.
func whole200(v any) *response {
	a := &response{whole: true}
	a.json(v)
	return a
}

// failure is an error that clients of all APIs show.
func failure(status int, text string) *response {
	a := &response{status: status, whole: true}
	a.json(object{"type": "error", "error": object{
		"type": "invalid_request_error", "code": status, "message": text, "status": "INVALID_ARGUMENT",
	}})
	return a
}

// event adds a server-sent event; "": without a name.
func (a *response) event(name string, v any) {
	if name != "" {
		a.text("event: " + name + "\n")
	}
	a.text("data: ")
	a.json(v)
	a.text("\n\n")
}

func (a *response) text(s string) { a.data.WriteString(s) }

func (a *response) json(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // every value here can be JSON
	}
	a.data.Write(data)
}
