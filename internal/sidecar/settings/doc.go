// Package settings is what stands around the HTTP API of `ragpilot serve`: its configuration, its listeners, and what every
// request passes before the API sees it. The API itself is a plain [http.Handler] given to [New].
//
// A [Config] is put together by a [Source] from a file, the environment and flags. A [Server] runs it until its context
// ends, and then lets running answers end. What can change without a restart is in [Reloadable]; a [Live] holds the
// present one for everybody who needs it. [Metrics] counts requests in a Prometheus registry.
//
//	cfg, err := settings.Source{File: "ragpilot.yaml"}.Load()
//	live := settings.NewLive(cfg)
//	server, err := settings.New(cfg, api, settings.Options{Live: live, Logger: settings.NewLogger(os.Stderr, cfg.LogFormat, live)})
//	err = server.Run(ctx) // until ctx ends and answers have drained
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
package settings
