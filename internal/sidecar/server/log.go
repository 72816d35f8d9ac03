package server

import (
	"io"
	"log/slog"
	"strings"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

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
