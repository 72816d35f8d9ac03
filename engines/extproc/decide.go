package extproc

import (
	"context"
	"errors"
	"net/http"
)

// Request is what a gateway has received.
type Request struct {
	Method, Path, Authority string
	Header                  http.Header // without pseudo headers
	Body                    []byte
	// Subset are the endpoints, "ip:port", that may be picked; nil: the gateway does not say. It is empty if there is none.
	Subset []string
}

// Decision is what happens to a request. The zero value lets it pass as it came.
type Decision struct {
	// Endpoints are "ip:port", best first; the gateway tries them in this order. Empty: the gateway routes by itself.
	Endpoints []string
	// Body replaces the request's; nil: it stays. A request that came without a body gets none.
	Body []byte
	// Header is set in the request, for the engine; a name without values is removed.
	Header http.Header
	// Answer, if not nil, is called once when the answer begins. What it returns is set in the answer, for the client.
	Answer func(status int) http.Header
	// Served, if not nil, is called once when the answer begins, with the endpoint that gave it, "" if the gateway does not say.
	Served func(endpoint string)
	// Ended, if not nil, is called once when the answer has ended, with its first and last bytes, at most 16 KiB each; usage stands
	// there. err says why it broke off, or that the gateway does not send answers' bodies ([ErrNoBody]).
	Ended func(head, tail []byte, err error)
}

// Decider decides about requests. It is called concurrently.
type Decider interface {
	// Decide returns what happens to a request. [ErrNoEndpoint] answers 503 and [ErrBusy] 429; after any other error the
	// request passes as it came, unless the gateway gave a subset, from which an endpoint must be picked.
	Decide(ctx context.Context, r Request) (Decision, error)
}

// DeciderFunc is a function as a [Decider].
type DeciderFunc func(ctx context.Context, r Request) (Decision, error)

// Decide calls f.
func (f DeciderFunc) Decide(ctx context.Context, r Request) (Decision, error) { return f(ctx, r) }

// Errors of a [Decider], and of answers.
var (
	// ErrNoEndpoint: none is ready.
	ErrNoEndpoint = errors.New("no endpoint is ready")
	// ErrBusy: the request should be dropped.
	ErrBusy = errors.New("too busy")
	// ErrNoBody: the gateway is not configured to send answers' bodies.
	ErrNoBody = errors.New("the gateway does not send answers")
	// ErrBrokenOff: the gateway ended the exchange before the answer had ended.
	ErrBrokenOff = errors.New("broken off")
)
