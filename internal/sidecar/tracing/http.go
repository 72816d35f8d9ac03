package tracing

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Server begins the span of a request to us. It belongs to the client's trace if the request has a valid traceparent.
// Route is one of few names.
func (t *Tracer) Server(ctx context.Context, h http.Header, method, route string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	method, name := known(method)
	ctx = propagation.TraceContext{}.Extract(ctx, carrier(h))
	return t.start(ctx, name+" "+route, trace.SpanKindServer, attribute.String(Method, method), attribute.String(Route, route))
}

// known bounds the names of methods, as the semantic conventions of HTTP do: in an attribute, and in a span's name.
func known(method string) (attr, name string) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method, method
	default:
		return "_OTHER", "HTTP"
	}
}

// Transport makes a span "forward" for each request that goes through next, and passes it to the upstream as traceparent.
// The span ends when the answer has ended, was broken off, or did not come. Of a nil Tracer it is next itself.
func (t *Tracer) Transport(next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return &transport{tracer: t, next: next}
}

type transport struct {
	tracer *Tracer
	next   http.RoundTripper
}

// RoundTrip sends a request.
func (x *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if !trace.SpanContextFromContext(ctx).IsValid() { // no server span above
		ctx = propagation.TraceContext{}.Extract(ctx, carrier(r.Header))
	}
	method, _ := known(r.Method)
	host := attribute.String(Address, r.URL.Hostname())
	ctx, span := x.tracer.start(ctx, "forward", trace.SpanKindClient, attribute.String(Method, method), host)
	if port, err := strconv.Atoi(r.URL.Port()); err == nil {
		span.Int(Port, port)
	}
	span.Known(RequestBytes, int(r.ContentLength))
	out := r.WithContext(ctx) // a RoundTripper must not change what it is given
	out.Header = r.Header.Clone()
	out.Header.Del("Tracestate")
	propagation.TraceContext{}.Inject(ctx, carrier(out.Header))

	resp, err := x.next.RoundTrip(out)
	if err != nil {
		span.Fail(kind(ctx, err))
		span.End()
		return resp, err
	}
	span.Status(resp.StatusCode)
	switch {
	case !span.Recorded():
	case resp.StatusCode == http.StatusSwitchingProtocols: // its body is a connection
		span.End()
	default:
		resp.Body = &body{ReadCloser: resp.Body, span: span, ctx: ctx}
	}
	return resp, nil
}

// kind names an error: its text may show addresses, and more.
func kind(ctx context.Context, err error) string {
	network, ok := errors.AsType[net.Error](err)
	switch {
	case ctx.Err() != nil, errors.Is(err, context.Canceled):
		return "canceled"
	case ok && network.Timeout():
		return "timeout"
	default:
		return "connection"
	}
}

// body is an answer that ends a span. Like every body it may be closed while it is read.
type body struct {
	io.ReadCloser
	span  Span
	ctx   context.Context // its cause is why a read failed
	begun bool
}

// Read notes the first byte, and the end.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && !b.begun {
		b.begun = true
		b.span.Event(FirstByte)
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		b.span.End()
	default:
		b.span.Fail(kind(b.ctx, err))
		b.span.End()
	}
	return n, err
}

// Close ends an answer that was not read to its end.
func (b *body) Close() error {
	b.span.Fail("aborted") // does nothing to a span that has ended
	b.span.End()
	return b.ReadCloser.Close()
}

// carrier reads and writes headers. The lines of a tracestate are one list (W3C Trace Context, 3.3.1.1); two traceparents
// make one that is none.
type carrier http.Header

// Get returns a header.
func (c carrier) Get(name string) string { return strings.Join(http.Header(c).Values(name), ",") }

// Set writes a header.
func (c carrier) Set(name, value string) { http.Header(c).Set(name, value) }

// Keys is asked by no propagator that is used here.
func (c carrier) Keys() []string { return propagation.HeaderCarrier(c).Keys() }
