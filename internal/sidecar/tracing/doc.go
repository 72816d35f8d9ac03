// Package tracing shows where the time of a request went: spans of OpenTelemetry, sent to a collector by OTLP over HTTP.
//
// A [Tracer] makes spans. One that is nil makes none, and all of its methods, and those of the zero [Span], do nothing
// and allocate nothing: code that is traced need not ask whether tracing is on.
//
//	tracer, err := tracing.Open(ctx, tracing.Options{Endpoint: "http://localhost:4318", Sample: 1}) // "": nil
//	ctx, span := tracer.Server(ctx, r.Header, r.Method, route) // continues the client's trace
//	_, stage := tracer.Start(ctx, "plan")                      // a child of it
//	stage.Int(tracing.Documents, 15)
//	stage.End()
//	transport = tracer.Transport(transport)                    // a span for each request upstream, passed on to it
//	err = tracer.Close(ctx)
//
// Spans wait in a queue of [QueueSpans] and one goroutine, which ends with [Tracer.Close], sends them. A collector that is
// slow or gone delays no request: what does not fit into the queue is dropped and counted.
//
// # What stands in a span
//
// Names, numbers and hashes. No prompt, answer, key, header or query, and of errors only their kind: the text of an error
// may quote any of them. Every text is cut at 256 bytes.
package tracing
