package proxy

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"

	"github.com/ragpilot/ragpilot/internal/sidecar/upstreamerr"
)

// statusGone is for a client that has gone; only the log and figures see it.
const statusGone = 499

// badAnswer is an answer that cannot be passed on. It names nothing but what is wrong with it.
type badAnswer string

func (e badAnswer) Error() string { return string(e) }

// unreachable answers for an upstream that could not. The client gets the kind of failure; addresses are for the log,
// where the request's ID leads to them. What the upstream sent is for neither.
func (p *Proxy) unreachable(w http.ResponseWriter, r *http.Request, out outgoing, err error) {
	code, kind := failure(err)
	level := slog.LevelWarn
	if r.Context().Err() != nil && code != http.StatusRequestEntityTooLarge {
		code, kind, level = statusGone, "the client has gone", slog.LevelDebug
	}
	if _, ours := errors.AsType[badAnswer](err); !ours {
		err = upstreamerr.Clean(err)
	}
	p.opt.Log.LogAttrs(r.Context(), level, "upstream failed", slog.String("route", r.Pattern), slog.Int("status", code),
		slog.Any("error", err), slog.String("request_id", p.opt.RequestID(r.Context())))
	writeError(w, code, out.failed+": "+kind)
}

// failure returns the status and the words for an error of a transport.
func failure(err error) (code int, kind string) {
	var large *http.MaxBytesError
	var bad badAnswer
	var network net.Error
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, "request body too large"
	case errors.As(err, &bad):
		return http.StatusBadGateway, string(bad)
	case errors.As(err, &network) && network.Timeout():
		if errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial" {
			return http.StatusBadGateway, "timeout" // nothing was sent
		}
		return http.StatusGatewayTimeout, "timeout"
	case errors.As(err, &dns):
		return http.StatusBadGateway, "host not found"
	case errors.Is(err, syscall.ECONNREFUSED):
		return http.StatusBadGateway, "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return http.StatusBadGateway, "connection reset"
	case isTLS(err):
		return http.StatusBadGateway, "TLS handshake failed"
	case errors.As(err, &op) && op.Op == "dial":
		return http.StatusBadGateway, "no connection"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return http.StatusBadGateway, "connection closed"
	default:
		return http.StatusBadGateway, "no valid answer"
	}
}

func isTLS(err error) bool {
	var alert tls.AlertError
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &alert) || errors.As(err, &record) || errors.As(err, &certificate)
}

// writeError answers in the reference's shape.
func writeError(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"detail": text})
}
