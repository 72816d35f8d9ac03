package server

import "strings"

// Route maps a path to the name under which it is counted and logged. There are 25 names, whatever clients ask for:
// paths of the API, "/v1/*" for what is passed through, "other" for the rest.
func Route(path string) string {
	switch path {
	case "/", "/health", "/healthz", "/readyz",
		"/reorder", "/build", "/schedule", "/deduplicate", "/evict", "/reset", "/search", "/insert",
		"/stats", "/requests", "/metrics/ttft", "/metrics/ttft/reset", "/cloud/stats",
		"/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/v1/embeddings", "/v1/models":
		return path
	}
	if strings.HasPrefix(path, "/v1/") {
		return "/v1/*"
	}
	return "other"
}

// isProbe reports whether a route is asked every few seconds by machines; its log lines are at the debug level.
func isProbe(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == "/health"
}
