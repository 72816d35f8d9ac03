package evict

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// DefaultMaxBody is the size in bytes of the largest body that is read.
const DefaultMaxBody = 8 << 20

// Requests knows which requests were sent, and for which cache. Both methods are called concurrently.
type Requests interface {
	// Find returns the scope of a request, false if it is not known.
	Find(id string) (contextpilot.Scope, bool)
	// Drop is called when nothing of a request is cached any more.
	Drop(id string)
}

// Options describe a [Handler].
type Options struct {
	// Requests says what was sent. Reports of other requests are counted and ignored. nil: an empty Registry.
	Requests Requests
	// Observe takes the events, as [contextpilot.Pilot.Observe] does; nil: events are dropped. It is called concurrently.
	Observe func(events ...contextpilot.Event) int
	// MaxBody bounds the body in bytes; 0 or less: DefaultMaxBody.
	MaxBody int64
}

// Handler is POST /evict. It is safe for concurrent use and starts no goroutine.
type Handler struct{ opt Options }

// New returns a handler.
func New(opt Options) *Handler {
	if opt.Requests == nil {
		opt.Requests = NewRegistry(1)
	}
	if opt.Observe == nil {
		opt.Observe = func(...contextpilot.Event) int { return 0 }
	}
	if opt.MaxBody <= 0 {
		opt.MaxBody = DefaultMaxBody
	}
	return &Handler{opt}
}

// Result is the answer to a report. Its members are those of the published server, as far as they have a meaning here.
type Result struct {
	Status     string   `json:"status"`                 // "success"
	Normalized []string `json:"normalized_request_ids"` // the requests reported as gone, as far as their form shows
	Removed    int      `json:"removed_count"`          // events that concerned a live request
	Evicted    []string `json:"evicted_request_ids"`    // requests that are gone
	Shrunk     []string `json:"shrunk_request_ids"`     // requests of which a part is left
	NotFound   []string `json:"not_found"`              // reported IDs that are no known request's
}

// Apply takes a report: each known request once, gone ones first.
func (h *Handler) Apply(r Report) Result {
	out := Result{Status: "success", Normalized: Normalize(r.Gone), Evicted: []string{}, Shrunk: []string{}, NotFound: []string{}}
	var events []contextpilot.Event
	seen := map[string]bool{}
	take := func(id string, tokens int) {
		name, scope, ok := h.find(id)
		switch {
		case healthCheck(id):
		case !ok:
			out.NotFound = append(out.NotFound, id)
		case seen[name]:
		case tokens > 0:
			seen[name] = true
			out.Shrunk = append(out.Shrunk, name)
			events = append(events, contextpilot.Event{Kind: contextpilot.Shrunk, Scope: scope, Request: name, Tokens: tokens})
		default:
			seen[name] = true
			out.Evicted = append(out.Evicted, name)
			events = append(events, contextpilot.Event{Kind: contextpilot.Gone, Scope: scope, Request: name})
		}
	}
	for _, id := range r.Gone {
		take(id, 0)
	}
	for _, p := range r.Shrunk {
		take(p.ID, p.Tokens)
	}
	if len(events) > 0 {
		out.Removed = h.opt.Observe(events...)
	}
	for _, id := range out.Evicted {
		h.opt.Requests.Drop(id)
	}
	return out
}

func (h *Handler) find(id string) (name string, scope contextpilot.Scope, ok bool) {
	name, ok = Match(id, func(id string) bool {
		s, known := h.opt.Requests.Find(id)
		if known {
			scope = s
		}
		return known
	})
	return name, scope, ok
}

// ServeHTTP answers 200 with a [Result], 405, 413, 400 for a body that is not text and 422 for one that is no report.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		reply(w, http.StatusMethodNotAllowed, detail{"Method Not Allowed"})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.opt.MaxBody))
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		reply(w, http.StatusRequestEntityTooLarge, detail{fmt.Sprintf("the body is larger than %d bytes", large.Limit)})
		return
	}
	if err != nil {
		reply(w, http.StatusBadRequest, detail{badBody})
		return
	}
	report, err := Parse(body)
	if problems, ok := errors.AsType[Problems](err); ok {
		reply(w, http.StatusUnprocessableEntity, detail{problems})
		return
	}
	if err != nil {
		reply(w, http.StatusBadRequest, detail{badBody})
		return
	}
	reply(w, http.StatusOK, h.Apply(report))
}

const badBody = "There was an error parsing the body"

// detail is the shape of errors: a text, or a list of problems.
type detail struct {
	Detail any `json:"detail"`
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that is gone needs no answer
}
