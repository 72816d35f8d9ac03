package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets
var assets embed.FS

// policy lets the page load its own files and nothing else. Trusted types keep its scripts from making markup of texts.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Handler serves the page at /ui/, its data at /ui/data.json, a request at /ui/requests/{id}.json and an engine's picture at
// /ui/engines/{id}.json. Files of the page have an ETag, what is measured is not stored.
func Handler(src Source) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /ui", http.RedirectHandler("/ui/", http.StatusMovedPermanently))
	names, err := assets.ReadDir("assets")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, entry := range names {
		f := readFile(entry.Name())
		if entry.Name() == "index.html" {
			mux.HandleFunc("GET /ui/{$}", f.serve)
			continue
		}
		mux.HandleFunc("GET /ui/"+entry.Name(), f.serve)
	}
	mux.HandleFunc("GET /ui/data.json", func(w http.ResponseWriter, _ *http.Request) { send(w, src.Data()) })
	mux.HandleFunc("GET /ui/requests/{file}", byID(src.Request))
	mux.HandleFunc("GET /ui/engines/{file}", byID(src.Picture))
	return guarded(mux)
}

// byID answers the path of a file named {id}.json.
func byID[T any](get func(id string) (T, bool)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, isJSON := strings.CutSuffix(r.PathValue("file"), ".json")
		value, ok := get(id)
		if !isJSON || !ok {
			http.NotFound(w, r)
			return
		}
		send(w, value)
	}
}

// guarded adds the headers that every answer has, errors too.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// file is an embedded file.
type file struct {
	name, kind, tag string
	body            []byte
}

func readFile(name string) file {
	body, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	sum := sha256.Sum256(body)
	return file{name: name, kind: kind(name), tag: `"` + hex.EncodeToString(sum[:12]) + `"`, body: body}
}

// kind names the media type. Those of scripts and styles do not depend on the machine's table.
func kind(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	default:
		return mime.TypeByExtension(path.Ext(name))
	}
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache") // may be kept, but is asked for again
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.tag)
	http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(f.body))
}

// send answers with JSON. Only a figure that is no number can fail, which is the Source's mistake.
func send(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}
