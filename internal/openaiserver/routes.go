package openaiserver

import "net/http"

// Endpoint is what serves a path.
type Endpoint struct {
	Method string // a GET is a HEAD, too
	Serve  http.HandlerFunc
}

// NewMux serves endpoints by their paths, and refuses all else.
func NewMux(endpoints map[string]Endpoint) *http.ServeMux {
	mux := http.NewServeMux()
	for path, e := range endpoints {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != e.Method && (e.Method != http.MethodGet || r.Method != http.MethodHead) {
				w.Header().Set("Allow", e.Method)
				(&Refusal{http.StatusMethodNotAllowed, "", "method " + r.Method + ": want " + e.Method}).Write(w)
				return
			}
			e.Serve(w, r)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		(&Refusal{http.StatusNotFound, "", "there is no path " + Shorten(r.URL.Path, 80) + " here"}).Write(w)
	})
	return mux
}

// Model is what an entry of /v1/models begins with.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // seconds since 1970
	Owner   string `json:"owned_by"`
}

// NewModel returns the entry of a model of ours.
func NewModel(name string, created int64) Model { return Model{name, "model", created, "ragpilot"} }

// ModelList is the answer of /v1/models with one entry.
func ModelList[M any](entry M) any {
	return struct {
		Object string `json:"object"`
		Data   []M    `json:"data"`
	}{"list", []M{entry}}
}
