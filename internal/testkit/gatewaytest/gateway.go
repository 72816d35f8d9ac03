// Package gatewaytest has a gateway as it stands in front of real engines, with faults that make them reuse or report less than they
// would. It is a reverse proxy over real connections.
package gatewaytest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// Fault is what a gateway does wrong.
type Fault func(*gateway)

type gateway struct {
	engines []*url.URL
	turn    atomic.Int64
	paths   []string // beginnings of those that are let through; nil: all
	body    []func(chat map[string]json.RawMessage)
	header  []string // that are dropped
	answer  func(body []byte) []byte
}

// Start starts a gateway in front of engines, which ends with the test, and returns its URL.
func Start(t testing.TB, engines []string, faults ...Fault) string {
	t.Helper()
	g := &gateway{}
	for _, e := range engines {
		g.engines = append(g.engines, testkit.Must(url.Parse(e))(t))
	}
	for _, f := range faults {
		f(g)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	proxy := &httputil.ReverseProxy{Rewrite: g.rewrite, ModifyResponse: g.modify, Transport: transport, FlushInterval: -1}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.paths != nil && !slices.ContainsFunc(g.paths, func(p string) bool { return strings.HasPrefix(r.URL.Path, p) }) {
			http.NotFound(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func (g *gateway) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(g.engines[(g.turn.Add(1)-1)%int64(len(g.engines))])
	for _, name := range g.header {
		r.Out.Header.Del(name)
	}
	if len(g.body) == 0 || r.Out.Method != http.MethodPost || !strings.HasSuffix(r.Out.URL.Path, "/chat/completions") {
		return
	}
	data, err := io.ReadAll(r.Out.Body)
	var chat map[string]json.RawMessage
	if err == nil && json.Unmarshal(data, &chat) == nil {
		for _, change := range g.body {
			change(chat)
		}
		data, _ = json.Marshal(chat) // of members that were read
	}
	r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
}

func (g *gateway) modify(r *http.Response) error {
	if g.answer == nil || !strings.HasSuffix(r.Request.URL.Path, "/chat/completions") {
		return nil
	}
	data, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	data = g.answer(data)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	r.Header.Set("Content-Length", strconv.Itoa(len(data)))
	return err
}

// Drops is a gateway that passes chats on without some members of their bodies.
func Drops(members ...string) Fault {
	return func(g *gateway) {
		g.body = append(g.body, func(chat map[string]json.RawMessage) {
			for _, name := range members {
				delete(chat, name)
			}
		})
	}
}

// DropsHeader is a gateway that passes requests on without a header.
func DropsHeader(name string) Fault { return func(g *gateway) { g.header = append(g.header, name) } }

// Only is a gateway that knows paths with these beginnings, and no others.
func Only(paths ...string) Fault { return func(g *gateway) { g.paths = paths } }

// Salts is a gateway that gives each chat a cache salt of its own.
func Salts() Fault {
	return func(g *gateway) {
		n := 0
		g.body = append(g.body, func(chat map[string]json.RawMessage) {
			n++
			chat["cache_salt"] = json.RawMessage(`"gateway-` + strconv.Itoa(n) + `"`)
		})
	}
}

// Dates is a gateway that puts the time in front of each chat.
func Dates() Fault {
	return func(g *gateway) {
		g.body = append(g.body, func(chat map[string]json.RawMessage) {
			front := json.RawMessage(`{"role":"system","content":"It is ` + time.Now().Format(time.RFC3339Nano) + `."}`)
			var list []json.RawMessage
			if json.Unmarshal(chat["messages"], &list) == nil {
				chat["messages"], _ = json.Marshal(append([]json.RawMessage{front}, list...)) // of members that were read
			}
		})
	}
}

// details are the members that report what was cached; llama.cpp has two.
var details = regexp.MustCompile(`"(prompt_tokens_details|timings)":\{[^}]*\}`)

// HidesDetails is a gateway whose answers do not report what was cached.
func HidesDetails() Fault {
	return func(g *gateway) {
		g.answer = func(body []byte) []byte { return details.ReplaceAll(body, []byte(`"$1":null`)) }
	}
}
