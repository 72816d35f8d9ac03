package server

import "net/http"

// states of a server, in the order in which it passes through them.
const (
	starting int32 = iota
	ready
	draining
)

const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

// isHealthPath reports whether a path is that of a probe, which is answered to everybody.
func isHealthPath(path string) bool { return path == healthPath || path == readyPath }

// probed answers /healthz and /readyz, for which no key is asked, and leaves the rest to next.
func (s *Server) probed(next handle) handle {
	return func(a *answer, r *http.Request) {
		switch r.URL.Path {
		case healthPath:
			healthz(a, r)
		case readyPath:
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
