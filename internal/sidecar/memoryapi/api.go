package memoryapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/internal/sidecar/reqbody"
	"github.com/ragpilot/ragpilot/memory"
)

// Options configure an API. Store is required.
type Options struct {
	// Store returns the store of a tenant, for as long as release is not called. Nothing of one tenant's store is shown to
	// another.
	Store func(ctx context.Context, tenant string) (s memory.Store, release func(), err error)
	// Tenant returns the tenant of a request; nil: all are of the tenant "".
	Tenant func(*http.Request) string
	// Extraction names how facts are made of messages, for GET /configure.
	Extraction string
	// Index answers the requests to POST /search, where it has no prefix, that are an index's: those with a context and
	// without a query. nil: there are none.
	Index http.Handler
	Log   *slog.Logger // nil: slog.Default
}

// API serves stores. Safe for concurrent use.
type API struct {
	opt   Options
	other atomic.Bool // memory.ErrEmbedder was logged
}

// New returns an API.
func New(o Options) *API {
	if o.Tenant == nil {
		o.Tenant = func(*http.Request) string { return "" }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &API{opt: o}
}

// action answers a request with a value that is sent as JSON, or an error.
type action func(s memory.Store, r *http.Request) (any, error)

// Hosted enters the routes of the hosted service that Mem0's client calls, behind a prefix such as "/mem0" or none.
func (a *API) Hosted(mux *http.ServeMux, prefix string) {
	a.enter(mux, prefix, map[string]action{
		"GET /v1/ping/{$}":                      ping,
		"POST /v3/memories/add/{$}":             add,
		"POST /v3/memories/{$}":                 list,
		"POST /v3/memories/search/{$}":          search,
		"POST /v1/memories/{$}":                 add,
		"POST /v2/memories/{$}":                 list,
		"POST /v1/memories/search/{$}":          search,
		"POST /v2/memories/search/{$}":          search,
		"GET /v1/memories/{$}":                  listByQuery,
		"DELETE /v1/memories/{$}":               deleteAll,
		"GET /v1/memories/{id}/{$}":             get,
		"PUT /v1/memories/{id}/{$}":             update,
		"DELETE /v1/memories/{id}/{$}":          remove,
		"GET /v1/memories/{id}/history/{$}":     history,
		"PUT /v1/batch/{$}":                     batchUpdate,
		"DELETE /v1/batch/{$}":                  batchDelete,
		"GET /v1/entities/{$}":                  entities,
		"DELETE /v2/entities/{type}/{name}/{$}": deleteEntity,
		"DELETE /v1/entities/{type}/{name}/{$}": deleteEntity,
	})
	for _, path := range notOffered {
		mux.HandleFunc(prefix+path, refused)
		mux.HandleFunc(prefix+strings.TrimSuffix(path, "/"), refused)
	}
}

// notOffered are paths of the hosted service with all below them: what is not a route above is refused here, so that it is not
// taken for an engine's.
var notOffered = []string{"/v1/feedback/", "/v1/exports/", "/v1/summary/", "/v1/webhooks/", "/v1/entities/"}

// refused answers a request of [notOffered], whether or not the store can be opened.
func refused(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotImplemented)
	detail := r.Method + " " + r.URL.Path + " of Mem0's service is not offered by this server"
	_ = json.NewEncoder(w).Encode(map[string]string{"detail": detail})
}

// SelfHosted enters the routes of Mem0's own server, behind a prefix or none. Without a prefix, POST /reset is another
// API's, and POST /search is shared with [Options.Index].
func (a *API) SelfHosted(mux *http.ServeMux, prefix string) {
	routes := map[string]action{
		"POST /memories":              add,
		"GET /memories":               listByQuery,
		"DELETE /memories":            deleteAll,
		"GET /memories/{id}":          get,
		"PUT /memories/{id}":          update,
		"DELETE /memories/{id}":       remove,
		"GET /memories/{id}/history":  history,
		"POST /search":                search,
		"GET /configure":              a.configuration,
		"POST /configure":             refuse("Settings are the server's own: they are not changed by clients"),
		"POST /generate-instructions": refuse("Instructions are not generated here: give them with a request"),
	}
	switch {
	case prefix != "":
		routes["POST /reset"] = reset
	case a.opt.Index != nil:
		delete(routes, "POST /search")
		mux.HandleFunc("POST /search", a.searchBoth)
	}
	a.enter(mux, prefix, routes)
}

// searchBoth is POST /search of Mem0 and of the index.
func (a *API) searchBoth(w http.ResponseWriter, r *http.Request) {
	raw, err := reqbody.ReadAll(r)
	if err != nil {
		a.answer(w, r, func(memory.Store, *http.Request) (any, error) { return nil, err })
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	var members map[string]json.RawMessage // a struct's names would be found in any case
	_ = json.Unmarshal(raw, &members)      // Mem0 answers what is no object
	if members["context"] != nil && members["query"] == nil {
		a.opt.Index.ServeHTTP(w, r)
		return
	}
	a.answer(w, r, search)
}

func (a *API) enter(mux *http.ServeMux, prefix string, routes map[string]action) {
	for route, do := range routes {
		method, path, _ := strings.Cut(route, " ")
		mux.HandleFunc(method+" "+prefix+path, func(w http.ResponseWriter, r *http.Request) { a.answer(w, r, do) })
	}
}

func (a *API) answer(w http.ResponseWriter, r *http.Request, do action) {
	store, release, err := a.opt.Store(r.Context(), a.opt.Tenant(r))
	var value any
	if err == nil {
		defer release()
		value, err = do(store, r)
	}
	w.Header().Set("Content-Type", "application/json")
	if err == nil {
		_ = json.NewEncoder(w).Encode(value)
		return
	}
	status := statusOf(err)
	detail := err.Error()
	if status >= 500 && status != http.StatusNotImplemented { // what is inside is the log's
		detail = failure(status, err)
		level := slog.LevelError
		// The embedder logs once that it is not ready; that another one made the vectors holds until the operator acts.
		if errors.Is(err, embed.ErrNotReady) || errors.Is(err, memory.ErrEmbedder) && a.other.Swap(true) {
			level = slog.LevelDebug
		}
		a.opt.Log.Log(r.Context(), level, "memory", "path", r.URL.Path, "error", err)
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"detail": detail})
}

// read decodes a body; an empty one is an empty object.
func read(r *http.Request, into any) error {
	raw, err := reqbody.ReadAll(r)
	if err != nil {
		return err
	}
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		if errors.Is(err, memory.ErrBadFilter) {
			return err
		}
		return badRequest("Body: %v", err)
	}
	return nil
}
