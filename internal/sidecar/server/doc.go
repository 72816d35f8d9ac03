// Package server is what stands around the HTTP API of `ragpilot serve`: its listeners, and what every request passes before the
// API sees it. The API itself is a plain [http.Handler] given to [New].
//
// A [Server] runs until its context ends, and then lets running answers end. It counts requests in
// the registry of [Options].
//
//	live := settings.NewLive(cfg)
//	s, err := server.New(cfg, api, server.Options{Live: live, Logger: server.NewLogger(os.Stderr, cfg.LogFormat, live)})
//	err = s.Run(ctx) // until ctx ends and answers have drained
//
// A request to the main listener passes, in this order:
//
//	request ID, log line, metrics      X-Ragpilot-Request-Id, RequestID(ctx)
//	   └─ panic → 500                  {"detail":"Internal Server Error"}
//	      └─ body limit and deadline   413, 408
//	         └─ /healthz, /readyz      answered here, without a key
//	            └─ key                 401
//	               └─ tenant           tenant.From(ctx)
//	                  └─ the API
//
// The admin listener has /metrics, /debug/pprof/, /healthz, /readyz and whatever is added to [Server.Admin]. It asks for
// no key: keep it on a loopback address, or behind something that does.
//
// # Caveats
//
// Log lines never hold a body, a header, a query, a key, or a path that is not in the list of [Route]. The value of a
// panic is not logged unless the Go runtime raised it, because it may quote a prompt; the stack is.
package server
