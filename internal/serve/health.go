package serve

import "net/http"

// states of a server, in the order in which it passes through them.
const (
	starting int32 = iota
	ready
	draining
)

// probed answers /healthz and /readyz, for which no key is asked, and leaves the rest to next.
func (s *Server) probed(next handle) handle {
	return func(a *answer, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			healthz(a, r)
		case "/readyz":
			s.readyz(a, r)
		default:
			next(a, r)
		}
	}
}

// healthz says that the process runs. It stays well while answers drain: a restart would cut them.
func healthz(w http.ResponseWriter, _ *http.Request) {
	sendJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz says whether new requests are welcome.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	switch s.state.Load() {
	case ready:
		sendJSON(w, http.StatusOK, map[string]string{"status": "ready"})
	case draining:
		sendJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "not_ready", "reason": "draining: the server was told to stop"})
	default:
		sendJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "not_ready", "reason": "starting: the server does not listen yet"})
	}
}
