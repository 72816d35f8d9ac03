package langchain

import (
	"context"
	"net/http"
)

type requestIDKey struct{}

func withRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the ID of the planned request that a call is for, or "". It is in the context that a model
// wrapped by [Wrap] is called with, and so in the context of the HTTP requests that the model's client makes.
// An engine that gets this ID can name it in its cache events.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// Transport returns a RoundTripper that sends the request ID as header X-Request-Id, where vLLM reads it:
//
//	llm, err := openai.New(openai.WithHTTPClient(&http.Client{Transport: langchain.Transport(nil)}))
//
// next makes the calls; nil means [http.DefaultTransport]. Engines that read the ID elsewhere, like SGLang in the body,
// can be used through engines/openai and [Model].
func Transport(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return transport{next}
}

type transport struct{ next http.RoundTripper }

// RoundTrip adds the header to a copy of the request, which it must not change.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if id := RequestID(req.Context()); id != "" {
		req = req.Clone(req.Context())
		req.Header.Set("X-Request-Id", id)
	}
	return t.next.RoundTrip(req)
}
