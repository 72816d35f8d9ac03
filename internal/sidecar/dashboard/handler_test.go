package dashboard_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
)

// reply is an answer that was read to its end.
type reply struct {
	code   int
	header http.Header
	body   string
}

// ask asks a handler without a connection; header holds names and values in turn.
func ask(t *testing.T, h http.Handler, method, path string, header ...string) reply {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return reply{w.Code, w.Header(), w.Body.String()}
}

func TestHandlerAnswers(t *testing.T) {
	h := dashboard.Handler(newSample(2, dashboard.Options{TextBytes: 1 << 10}))
	known := newSample(2, dashboard.Options{}).Data().Requests[0].ID
	for _, c := range []struct {
		method, path string
		code         int
		kind, cache  string
	}{
		{http.MethodGet, "/ui/", 200, "text/html; charset=utf-8", "no-cache"},
		{http.MethodHead, "/ui/", 200, "text/html; charset=utf-8", "no-cache"},
		{http.MethodGet, "/ui/app.js", 200, "text/javascript; charset=utf-8", "no-cache"},
		{http.MethodGet, "/ui/style.css", 200, "text/css; charset=utf-8", "no-cache"},
		{http.MethodGet, "/ui/data.json", 200, "application/json", "no-store"},
		{http.MethodHead, "/ui/data.json", 200, "application/json", "no-store"},
		{http.MethodGet, "/ui/requests/" + known + ".json", 200, "application/json", "no-store"},
		{http.MethodGet, "/ui/requests/" + known, 404, "", "no-store"},
		{http.MethodGet, "/ui/requests/none.json", 404, "", "no-store"},
		{http.MethodGet, "/ui/requests/..%2f..%2fgo.mod", 404, "", "no-store"},
		{http.MethodGet, "/ui/index.html", 404, "", "no-store"},
		{http.MethodGet, "/ui/assets/app.js", 404, "", "no-store"},
		{http.MethodGet, "/ui/handler.go", 404, "", "no-store"},
		{http.MethodGet, "/", 404, "", "no-store"},
		{http.MethodGet, "/ui", 301, "", "no-store"},
		{http.MethodPost, "/ui/", 405, "", "no-store"},
		{http.MethodPut, "/ui/data.json", 405, "", "no-store"},
		{http.MethodDelete, "/ui/requests/none.json", 405, "", "no-store"},
	} {
		t.Run(c.method+c.path, func(t *testing.T) {
			res := ask(t, h, c.method, c.path)
			if res.code != c.code {
				t.Errorf("status %d, want %d", res.code, c.code)
			}
			if kind := res.header.Get("Content-Type"); c.kind != "" && kind != c.kind {
				t.Errorf("Content-Type %q, want %q", kind, c.kind)
			}
			if cache := res.header.Get("Cache-Control"); cache != c.cache {
				t.Errorf("Cache-Control %q, want %q", cache, c.cache)
			}
			if c.code == 405 && res.header.Get("Allow") != "GET, HEAD" {
				t.Errorf("Allow %q", res.header.Get("Allow"))
			}
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
			} {
				if got := res.header.Get(name); got != want {
					t.Errorf("%s %q, want %q", name, got, want)
				}
			}
			csp := res.header.Get("Content-Security-Policy")
			for _, part := range []string{
				"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
				"img-src 'self' data:", "frame-ancestors 'none'",
			} {
				if !strings.Contains(csp+";", part+";") {
					t.Errorf("%q is not in %q", part, csp)
				}
			}
			if strings.Contains(csp, "unsafe") {
				t.Errorf("unsafe: %q", csp)
			}
		})
	}
}

func TestHandlerTagsFiles(t *testing.T) {
	h := dashboard.Handler(newSample(1, dashboard.Options{}))
	res := ask(t, h, http.MethodGet, "/ui/app.js")
	tag := res.header.Get("ETag")
	if len(tag) < 10 {
		t.Fatalf("ETag %q", tag)
	}
	if res := ask(t, h, http.MethodGet, "/ui/app.js", "If-None-Match", tag); res.code != http.StatusNotModified || res.body != "" {
		t.Errorf("the same file again: %d", res.code)
	}
	if res := ask(t, h, http.MethodGet, "/ui/style.css", "If-None-Match", tag); res.code != http.StatusOK {
		t.Errorf("another file: %d", res.code)
	}
	if res := ask(t, h, http.MethodGet, "/ui/data.json"); res.header.Get("ETag") != "" {
		t.Errorf("data.json has an ETag")
	}
}

// TestPageNamesNoOther holds the files to what the policy allows.
func TestPageNamesNoOther(t *testing.T) {
	h := dashboard.Handler(newSample(1, dashboard.Options{}))
	files, err := os.ReadDir("assets")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		path := strings.TrimPrefix(file.Name(), "index.html")
		text := ask(t, h, http.MethodGet, "/ui/"+path).body
		for _, namespace := range []string{"'http://www.w3.org/2000/svg'", `"http://www.w3.org/2000/svg"`} {
			text = strings.ReplaceAll(text, namespace, "")
		}
		for _, bad := range []string{
			"http:", "https:", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "<style",
			" style=", " onclick=", "@import",
		} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %q", path, bad)
			}
		}
	}
}

func TestHandlerKeepsUnknownApart(t *testing.T) {
	d := dashboard.Detail{Request: dashboard.Request{ID: "a", CachedTokens: new(0)}}
	h := dashboard.Handler(fixed{details: map[string]dashboard.Detail{"a": d}})
	var got map[string]any
	if err := json.Unmarshal([]byte(ask(t, h, http.MethodGet, "/ui/requests/a.json").body), &got); err != nil {
		t.Fatal(err)
	}
	if got["cached_tokens"] != 0.0 || got["prompt_tokens"] != nil || got["before"] != nil {
		t.Errorf("%v", got)
	}
}

func TestHandlerHidesFaults(t *testing.T) {
	d := dashboard.Data{}
	d.Totals.HitRatio = new(math.NaN())
	res := ask(t, dashboard.Handler(fixed{data: d}), http.MethodGet, "/ui/data.json")
	if res.code != http.StatusInternalServerError || strings.Contains(res.body, "NaN") {
		t.Errorf("%d %q", res.code, res.body)
	}
}

func TestHandlerServesPictures(t *testing.T) {
	want := dashboard.Picture{
		ID:     "e",
		Live:   3,
		Seen:   2,
		Blocks: 1,
		Parts:  []dashboard.Part{{Name: "00ff", Parent: -1, Tokens: 16, End: 16, Requests: 2}},
	}
	h := dashboard.Handler(fixed{pictures: map[string]dashboard.Picture{"e": want}})
	var got dashboard.Picture
	if err := json.Unmarshal([]byte(ask(t, h, http.MethodGet, "/ui/engines/e.json").body), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{"/ui/engines/other.json", "/ui/engines/e", "/ui/engines/"} {
		if res := ask(t, h, http.MethodGet, path); res.code != http.StatusNotFound {
			t.Errorf("%s: %d", path, res.code)
		}
	}
}
