package serve

import (
	"io"
	"log/slog"
)

// NewLogger returns a logger that writes text or json, at the level that live has at the moment. The lines of a
// request carry request_id, see [RequestID].
func NewLogger(w io.Writer, format string, live *Live) *slog.Logger {
	o := &slog.HandlerOptions{Level: live}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
