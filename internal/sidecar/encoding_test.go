package sidecar_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// taken is a request as an engine gets it.
type taken struct {
	encoding []string
	length   int64
	body     []byte
}

// readPaths are the endpoints whose bodies are read, each with a body that it takes.
var readPaths = map[string]string{
	"/v1/chat/completions": docsChat("what?", passage("x"), passage("y")),
	"/v1/messages":         docsChat("what?", passage("x"), passage("y")),
	"/v1/responses":        `{"model":"m","input":[]}`,
	"/v1/completions":      `{"model":"m","prompt":"p"}`,
	"/reorder":             `{"contexts":[[1,2],[2,1]]}`,
	"/memories":            `{"messages":[{"role":"user","content":"I like tea"}],"user_id":"u"}`,
	"/search":              `{"query":"tea","user_id":"u"}`,
}

func startEncoded(t *testing.T) (s whole, engine <-chan taken) {
	t.Helper()
	got := make(chan taken, 1)
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- taken{r.Header["Content-Encoding"], r.ContentLength, body}
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(e.Close)
	return startWhole(t, func(c *settings.Config) {
		c.InferAPIURL, c.Memory.Dir, c.Memory.Embedder, c.Limits.BodyBytes = e.URL, t.TempDir(), "lexical", 1<<20
	}), got
}

func (s whole) postEncoded(t *testing.T, path string, body []byte, encodings ...string) reply {
	t.Helper()
	var header []string
	for _, e := range encodings {
		header = append(header, "Content-Encoding", e)
	}
	return request(t, http.MethodPost, s.url+path, string(body), header...)
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A body in gzip is answered as the same body without it, and forwarded unpacked.
func TestPackedBodiesAreRead(t *testing.T) {
	s, engine := startEncoded(t)
	for path, body := range readPaths {
		proxied := strings.HasPrefix(path, "/v1/")
		var plain taken
		if path != "/memories" { // which stores a memory once
			want := s.post(t, path, body)
			if want.code != http.StatusOK {
				t.Fatalf("%s, not packed: %+v", path, want)
			}
			if proxied {
				plain = <-engine
			}
		}
		for _, encoding := range []string{"gzip", "identity"} {
			sent := []byte(body)
			if encoding == "gzip" {
				sent = zipped(t, body)
			}
			if got := s.postEncoded(t, path, sent, encoding); got.code != http.StatusOK {
				t.Errorf("%s, %s: %+v", path, encoding, got)
				continue
			}
			if !proxied {
				continue
			}
			got := <-engine
			if got.encoding != nil || got.length != int64(len(got.body)) || !sameButID(t, got.body, plain.body) {
				t.Errorf("%s, %s: the engine got %q, length %d, %.200s; want %.200s", path, encoding, got.encoding, got.length, got.body, plain.body)
			}
		}
	}
}

// sameButID reports whether two bodies are the same but for the request IDs that were made for them.
func sameButID(t *testing.T, a, b []byte) bool {
	t.Helper()
	var texts [2]string
	for i, raw := range [][]byte{a, b} {
		var members map[string]any
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Errorf("%v: %.200s", err, raw)
		}
		for _, name := range []string{"request_id", "rid"} {
			delete(members, name)
		}
		text, _ := json.Marshal(members)
		texts[i] = string(text)
	}
	return texts[0] == texts[1]
}

// What cannot be unpacked, or is too long then, is refused on all endpoints that are read, and does not reach the engine.
func TestPackedBodiesAreRefused(t *testing.T) {
	s, engine := startEncoded(t)
	bomb := bytes.Repeat(zipped(t, string(make([]byte, 1<<20))), 1<<10) // 1 GiB in as many members
	large := zipped(t, `{"messages":[]`+strings.Repeat(" ", 1<<20)+`}`)
	for path, body := range readPaths {
		packed := zipped(t, body)
		for _, c := range []struct {
			name     string
			sent     []byte
			encoding []string
			code     int
			text     string
		}{
			{"br", []byte(body), []string{"br"}, http.StatusUnsupportedMediaType, "Content-Encoding is \\\"br\\\""},
			{"zstd", packed, []string{"zstd"}, http.StatusUnsupportedMediaType, "zstd"},
			{"deflate", packed, []string{"deflate"}, http.StatusUnsupportedMediaType, "want gzip, identity or none"},
			{"a list", zipped(t, string(packed)), []string{"gzip, gzip"}, http.StatusUnsupportedMediaType, "gzip, gzip"},
			{"two headers", zipped(t, string(packed)), []string{"gzip", "gzip"}, http.StatusUnsupportedMediaType, "gzip, gzip"},
			{"not packed", []byte(body), []string{"gzip"}, http.StatusBadRequest, "not valid gzip"},
			{"cut", packed[:len(packed)-3], []string{"gzip"}, http.StatusBadRequest, "not valid gzip"},
			{"garbage behind", append(bytes.Clone(packed), "garbage"...), []string{"gzip"}, http.StatusBadRequest, "not valid gzip"},
			{"too large", large, []string{"gzip"}, http.StatusRequestEntityTooLarge, ""},
			{"a bomb", bomb, []string{"gzip"}, http.StatusRequestEntityTooLarge, ""},
		} {
			got := s.postEncoded(t, path, c.sent, c.encoding...)
			if got.code != c.code || !strings.Contains(got.text, c.text) {
				t.Errorf("%s, %s: %d %s, want %d with %q", path, c.name, got.code, got.text, c.code, c.text)
			}
		}
	}
	select {
	case got := <-engine:
		t.Errorf("reached the engine: %.200s", got.body)
	default:
	}
}

// A path that passes unread passes as it comes.
func TestPackedBodiesPassUnread(t *testing.T) {
	s, engine := startEncoded(t)
	for _, encoding := range []string{"gzip", "br"} {
		sent := zipped(t, `{"input":"text"}`)
		if got := s.postEncoded(t, "/v1/embeddings", sent, encoding); got.code != http.StatusOK {
			t.Errorf("%s: %+v", encoding, got)
		}
		if got := <-engine; len(got.encoding) != 1 || got.encoding[0] != encoding || !bytes.Equal(got.body, sent) {
			t.Errorf("%s: the engine got %q, %d bytes", encoding, got.encoding, len(got.body))
		}
	}
}
