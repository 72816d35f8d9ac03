package openai_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/embed/openai"
)

// fakeServer is a fake of an OpenAI-compatible server. A text's vector is its length in bytes, then its first bytes.
type fakeServer struct {
	*httptest.Server
	mu       sync.Mutex
	asked    []body
	headers  []http.Header
	script   []func(w http.ResponseWriter) // for the first requests, in place of an answer; nil: none
	scramble bool                          // the answer's vectors in another order
}

type body struct {
	Input      []string `json:"input"`
	Model      string   `json:"model"`
	Dimensions int      `json:"dimensions"`
	Encoding   string   `json:"encoding_format"`
}

func newFake(t testing.TB, script ...func(w http.ResponseWriter)) *fakeServer {
	f := &fakeServer{script: script}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var b body
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.asked, f.headers = append(f.asked, b), append(f.headers, r.Header)
	var next func(w http.ResponseWriter)
	if len(f.script) > 0 {
		next, f.script = f.script[0], f.script[1:]
	}
	f.mu.Unlock()
	switch {
	case r.URL.Path != "/v1/embeddings":
		http.NotFound(w, r)
	case next != nil:
		next(w)
	default:
		f.answer(w, b)
	}
}

func (f *fakeServer) answer(w http.ResponseWriter, b body) {
	type datum struct {
		Index     int `json:"index"`
		Embedding any `json:"embedding"`
	}
	data := make([]datum, len(b.Input))
	for i, text := range b.Input {
		v := want(text, b.Dimensions)
		data[i] = datum{i, v}
		if b.Encoding == "base64" {
			raw, _ := binary.Append(nil, binary.LittleEndian, v)
			data[i].Embedding = base64.StdEncoding.EncodeToString(raw)
		}
	}
	if f.scramble {
		slices.Reverse(data)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
}

// want is the vector of a text.
func want(text string, dimensions int) []float32 {
	if dimensions == 0 {
		dimensions = 3
	}
	v := make([]float32, dimensions)
	v[0] = float32(len(text))
	for i := 1; i < len(v) && i <= len(text); i++ {
		v[i] = float32(text[i-1]) / 7
	}
	return v
}

// says answers with a status and a body.
func says(status int, text string) func(w http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
}

func embedder(t testing.TB, f *fakeServer, change func(*openai.Options)) *openai.Embedder {
	t.Helper()
	opts := openai.Options{URL: f.URL + "/v1", Client: f.Client()}
	if change != nil {
		change(&opts)
	}
	e, err := openai.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
