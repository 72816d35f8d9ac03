package server

import (
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// adminBody bounds the body of a request to the admin listener, in bytes.
const adminBody = 1 << 20

// adminMux has the routes of the admin listener. Of the profiles it leaves out the command line, which may hold keys.
func (s *Server) adminMux(reg *prometheus.Registry, profiles bool) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	mux.HandleFunc("GET "+healthPath, healthz)
	mux.HandleFunc("GET "+readyPath, s.readyz)
	if !profiles {
		return mux
	}
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

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
		sendJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "not_ready", "reason": "draining: the server is stopping"})
	default:
		sendJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "not_ready", "reason": "starting: the server does not listen yet"})
	}
}
