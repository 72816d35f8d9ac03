package server

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/openaiserver"
)

// errShutdown is why requests end when the server is to end.
var errShutdown = errors.New("the server is shutting down")

func closing() *openaiserver.Refusal {
	return &openaiserver.Refusal{Status: http.StatusServiceUnavailable, Message: errShutdown.Error()}
}

// refusalOf is what a client gets for an error; nil: it has gone.
func (s *Server) refusalOf(ctx context.Context, err error) *openaiserver.Refusal {
	if known, ok := errors.AsType[*openaiserver.Refusal](err); ok {
		return known
	}
	if failed, ok := errors.AsType[*gpu.Error](err); ok {
		s.config.Logger.ErrorContext(ctx, "the device failed", "error", err)
		return &openaiserver.Refusal{Status: http.StatusServiceUnavailable, Message: failed.Error()}
	}
	switch {
	case errors.Is(context.Cause(ctx), errShutdown), errors.Is(err, local.ErrClosed):
		return closing()
	case ctx.Err() != nil:
		return nil //nolint:nilerr // that there is no answer is the result
	case errors.Is(err, engines.ErrRefused):
		_, message, _ := strings.Cut(err.Error(), engines.ErrRefused.Error()+": ")
		param, _, _ := strings.Cut(message, " ")
		param = strings.TrimSuffix(param, ":")
		if !isEngineMember(param) && param != "prompt" {
			param = ""
		}
		return openaiserver.Wrong(param, "%s", openaiserver.Shorten(message, 512))
	}
	s.config.Logger.ErrorContext(ctx, "a completion failed", "error", err)
	return &openaiserver.Refusal{Status: http.StatusInternalServerError, Message: "internal error"}
}

// fail answers with an error, if the client is still there.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if e := s.refusalOf(r.Context(), err); e != nil {
		e.Write(w)
	}
}
