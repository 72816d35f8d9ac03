package tracing

import (
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Span is a part of the work on a request. The zero Span is one that is not recorded. Safe for concurrent use; after End
// nothing changes it any more.
type Span struct {
	span   trace.Span // nil: not recorded
	client bool       // of a request that we make
}

// Recorded reports whether the span is recorded; what is costly to find out can be left out otherwise.
func (s Span) Recorded() bool { return s.span != nil }

// TraceID returns the trace's ID in hexadecimal digits, "" if the span is not recorded.
func (s Span) TraceID() string {
	if s.span == nil {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// Int sets an attribute.
func (s Span) Int(name string, value int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(name, value))
	}
}

// Known sets an attribute whose value is negative if it is not known: it is left out then.
func (s Span) Known(name string, value int) {
	if value >= 0 {
		s.Int(name, value)
	}
}

// Text sets an attribute; an empty value is left out. It must not come from a prompt, see the package's comment.
func (s Span) Text(name, value string) {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.String(name, value))
	}
}

// Status says what was answered. It is an error from 500 on, and in a request that we made from 400 on.
func (s Span) Status(code int) {
	if s.span == nil {
		return
	}
	s.Int(StatusCode, code)
	if code >= 500 || s.client && code >= 400 {
		s.Fail(strconv.Itoa(code))
	}
}

// Fail marks the span as failed. Kind is one of few words, not the text of an error.
func (s Span) Fail(kind string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(ErrorType, kind))
		s.span.SetStatus(codes.Error, "")
	}
}

// Event notes that something happens now.
func (s Span) Event(name string) {
	if s.span != nil {
		s.span.AddEvent(name)
	}
}

// Ordered notes that the order of a text's documents is known now, from before or newly chosen. OpenTelemetry keeps 128
// such events of a span.
func (s Span) Ordered(documents int, remembered bool) {
	if s.span != nil {
		s.span.AddEvent(Ordered, trace.WithAttributes(attribute.Int(Documents, documents), attribute.Bool(Remembered, remembered)))
	}
}

// End ends the span. Later calls do nothing.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}
