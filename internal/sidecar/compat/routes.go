package compat

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

// body decodes the body of a request for its handler.
func body(handle func(*API, *http.Request, *decoder) (any, error)) func(*API, *http.Request) (any, error) {
	return func(a *API, r *http.Request) (any, error) {
		d, err := decode(r)
		if err != nil {
			return nil, err
		}
		return handle(a, r, d)
	}
}

// routes are all endpoints. A handler returns the body of a 200 answer, or an error: a *failure says what to answer.
var routes = map[string]map[string]func(*API, *http.Request) (any, error){
	"/":                   {http.MethodGet: (*API).root},
	"/health":             {http.MethodGet: (*API).health},
	"/stats":              {http.MethodGet: (*API).stats},
	"/requests":           {http.MethodGet: (*API).requests},
	"/metrics/ttft":       {http.MethodGet: (*API).ttft},
	"/metrics/ttft/reset": {http.MethodPost: (*API).resetTTFT},
	"/reorder":            {http.MethodPost: body((*API).reorder)},
	"/build":              {http.MethodPost: body((*API).reorder)},
	"/schedule":           {http.MethodPost: body((*API).schedule)},
	"/deduplicate":        {http.MethodPost: body((*API).deduplicate)},
	"/evict":              {http.MethodPost: body((*API).evict)},
	"/reset":              {http.MethodPost: (*API).reset},
	"/search":             {http.MethodPost: body((*API).search)},
	"/insert":             {http.MethodPost: body((*API).insert)},
}

// ServeHTTP answers with JSON always. The caller bounds bodies, for instance by http.MaxBytesReader; a body over the
// bound is answered by 413.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	methods, ok := routes[r.URL.Path]
	if !ok {
		if short := strings.TrimSuffix(r.URL.Path, "/"); short != "/" && routes[short] != nil { // as the reference does
			to := *r.URL
			to.Path, to.RawPath = short, ""
			http.Redirect(w, r, to.RequestURI(), http.StatusTemporaryRedirect)
			return
		}
		answer(w, nil, fail(http.StatusNotFound, "Not Found"))
		return
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	handle, ok := methods[method]
	if !ok {
		allow := slices.Sorted(maps.Keys(methods))
		if methods[http.MethodGet] != nil {
			allow = append(allow, http.MethodHead)
		}
		w.Header().Set("Allow", strings.Join(allow, ", "))
		answer(w, nil, fail(http.StatusMethodNotAllowed, "Method Not Allowed"))
		return
	}
	body, err := handle(a, r)
	a.weigh(tenant.From(r.Context()))
	answer(w, body, err)
}

func answer(w http.ResponseWriter, body any, err error) {
	status := http.StatusOK
	if err != nil {
		f := asFailure(err)
		status, body = f.status, f.body
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body) // the client is gone
}
