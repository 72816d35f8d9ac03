package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
)

// requestIDHeader carries the request's ID to the client. It is not X-Request-Id, which may come from the engine.
const requestIDHeader = "X-Ragpilot-Request-Id"

// record is what the log line of a request says and inner middlewares find out.
type record struct{ id, tenant string }

type recordKey struct{}

// RequestID returns the ID of the request that ctx belongs to, as in the log and in the answer's
// X-Ragpilot-Request-Id; "" outside of a request.
func RequestID(ctx context.Context) string {
	if rec, ok := ctx.Value(recordKey{}).(*record); ok {
		return rec.id
	}
	return ""
}

// observed names, counts and logs requests. It is the outermost middleware, so that it sees what the client sees.
func (s *Server) observed(next handle) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		rec, route := &record{id: requestID(r)}, Route(r.URL.Path)
		a := newAnswer(w, r, rec.id, stall{patience: s.timeouts.Write, stalled: s.count.stalled.Inc})
		if s.state.Load() == draining {
			a.Header().Set("Connection", "close") // the next request goes elsewhere
		}
		s.inFlight.Add(1)
		s.count.inFlight.Inc()
		ctx, span := r.Context(), tracing.Span{}
		if !isProbe(route) {
			ctx, span = s.options.Tracer.Server(ctx, r.Header, r.Method, route)
			span.Text(tracing.RequestID, rec.id)
		}
		aborted := true // until next returns: it also ends by the panic that makes net/http break off
		defer func() {
			took := time.Since(began)
			status := a.status
			if status == 0 && !aborted {
				status = http.StatusOK // net/http's, for a handler that writes nothing
			}
			counted := status
			if aborted {
				counted = 0
			}
			s.count.ended(route, counted, took)
			ended(span, rec, status, aborted)
			s.inFlight.Add(-1)
			level := slog.LevelInfo
			if isProbe(route) {
				level = slog.LevelDebug
			}
			attrs := []slog.Attr{
				slog.String("method", method(r.Method)), slog.String("route", route), slog.Int("status", status),
				slog.Duration("duration", took), slog.Int64("bytes", a.bytes), slog.String("tenant", rec.tenant), slog.String("request_id", rec.id),
			}
			if aborted {
				attrs = append(attrs, slog.Bool("aborted", true))
			}
			if span.Recorded() {
				attrs = append(attrs, slog.String("trace_id", span.TraceID()))
			}
			s.log.LogAttrs(r.Context(), level, "request", attrs...)
		}()
		next(a, r.WithContext(context.WithValue(ctx, recordKey{}, rec)))
		a.finish()
		aborted = false
	})
}

// ended ends a request's span. A status of 0 is none that was sent.
func ended(span tracing.Span, rec *record, status int, aborted bool) {
	span.Text(tracing.Tenant, rec.tenant)
	if status != 0 {
		span.Status(status)
	}
	if aborted {
		span.Fail("aborted")
	}
	span.End()
}

// recovered turns a panic into a 500 and lets the server live. An answer that has begun is broken off, so that the
// client does not take it for complete.
func (s *Server) recovered(next handle) handle {
	return func(a *answer, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
				panic(v)
			}
			s.count.panics.Inc()
			s.log.LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("value", panicValue(v)),
				slog.String("route", Route(r.URL.Path)), slog.String("request_id", RequestID(r.Context())), slog.String("stack", string(debug.Stack())))
			if a.status != 0 {
				panic(http.ErrAbortHandler)
			}
			sendDetail(a, http.StatusInternalServerError, "Internal Server Error")
		}()
		next(a, r)
	}
}

// panicValue shows what the runtime raised, and only the type of anything else: that may quote a prompt.
func panicValue(v any) string {
	if err, ok := v.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", v)
}

// requestID takes the client's X-Request-Id, if it can stand in a log, or makes one: 16 hexadecimal digits.
func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); id != "" && len(id) <= 128 && !strings.ContainsFunc(id, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.:", c)
	}) {
		return id
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// method bounds what a log line says: a client may send any word.
func method(name string) string {
	switch name {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return name
	default:
		return "other"
	}
}

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

// NewLogger returns a logger that writes text or json, at the level that live has at the moment. The lines of a
// request carry request_id, see [RequestID].
func NewLogger(w io.Writer, format string, live *settings.Live) *slog.Logger {
	o := &slog.HandlerOptions{Level: live}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// StandardLog returns an output for package log, in which libraries write that know no other log. Each line is logged as
// a warning, up to the first text that it quotes: these may be bytes of a peer, and a part of an answer.
func StandardLog(l *slog.Logger) io.Writer { return standardLog{l} }

type standardLog struct{ log *slog.Logger }

func (s standardLog) Write(line []byte) (int, error) {
	text, _, _ := strings.Cut(strings.TrimSpace(string(line)), "\n")
	text, _, quoted := strings.Cut(text, `"`)
	if quoted {
		text = strings.TrimSuffix(text, " starting with ")
	}
	s.log.Warn("a library says", "text", strings.TrimSpace(text))
	return len(line), nil
}
