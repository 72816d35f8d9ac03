package sidecar_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
)

const (
	clientTrace = "0af7651916cd43dd8448eb211c80319c"
	clientSpan  = "b7ad6b7169203331"
	traceparent = "00-" + clientTrace + "-" + clientSpan + "-01"
)

// asking is a conversation with six documents in its system text, and in as many tool results; numbers name them, and
// those below zero the same in reverse.
func asking(question string, from int, results ...int) object {
	docs := func(from int) string {
		var all []string
		for i := range 6 {
			all = append(all, fmt.Sprintf("<document>document %d: %s</document>\n", max(from, -from)+i, strings.Repeat("it says what it says ", 20)))
		}
		if from < 0 {
			slices.Reverse(all)
		}
		return "<documents>\n" + strings.Join(all, "") + "</documents>"
	}
	messages := []object{{"role": "system", "content": docs(from)}, {"role": "user", "content": question}}
	for i, r := range results {
		id := fmt.Sprint("call", i)
		messages = append(
			messages,
			object{
				"role":       "assistant",
				"tool_calls": []object{{"id": id, "type": "function", "function": object{"name": "search", "arguments": "{}"}}},
			},
			object{"role": "tool", "tool_call_id": id, "content": docs(r)},
		)
	}
	return object{"model": "qwen3-8b", "messages": messages}
}

// A request of a client's trace: its spans are below each other as its stages are, the engine gets the ID of the one that
// waits for it, and the numbers are those of the plan and of the engine.
func TestSpansOfARequest(t *testing.T) {
	s := serveTraced(t, func(c *settings.Config) { c.Keys = []settings.Key{{Tenant: "red", Key: "k"}} })
	s.post(t, "/v1/chat/completions", asking("first?", 1, 10), "X-Api-Key", "k")
	s.ended(t, 1)
	s.post(
		t,
		"/v1/chat/completions",
		asking("second?", -1, 20, 20),
		"X-Api-Key",
		"k",
		"Traceparent",
		traceparent,
		"Tracestate",
		"a=1",
		"X-Contextpilot-Session",
		"of alice",
	)
	spans := s.ended(t, 1)
	server := named(t, spans, "POST /v1/chat/completions")
	if server.SpanContext.TraceID().String() != clientTrace || server.Parent.SpanID().String() != clientSpan || !server.Parent.IsRemote() {
		t.Errorf("not in the client's trace: %v below %v", server.SpanContext, server.Parent)
	}
	for _, x := range spans {
		if x.Name != server.Name &&
			(x.Parent.SpanID() != server.SpanContext.SpanID() || x.SpanContext.TraceID() != server.SpanContext.TraceID()) {
			t.Errorf("%s is below %v", x.Name, x.Parent)
		}
		if x.StartTime.Before(server.StartTime) || x.EndTime.After(server.EndTime) || x.Status.Code != 0 {
			t.Errorf("%s: %v to %v, status %v", x.Name, x.StartTime, x.EndTime, x.Status)
		}
	}
	var names []string
	for _, x := range spans {
		names = append(names, x.Name)
	}
	if want := []string{"read", "parse", "plan", "forward", server.Name}; !slices.Equal(names, want) {
		t.Errorf("in the order of their ends: %q, want %q", names, want)
	}
	holds(t, server, map[string]any{
		tracing.Route: "/v1/chat/completions", tracing.StatusCode: int64(200), tracing.Tenant: "red", tracing.Group: "planned",
		tracing.Model:     "qwen3-8b",
		tracing.Documents: int64(18), tracing.References: int64(6),
	})
	got := attributesOf(server.Attributes)
	if n, ok := got[tracing.PredictedTokens].(int64); !ok || n < 100 {
		t.Errorf("predicted %v: the system text was sent before", got[tracing.PredictedTokens])
	}
	prompt, _ := got[tracing.PromptTokens].(int64)
	if n, ok := got[tracing.CachedTokens].(int64); !ok || n < 100 || n >= prompt {
		t.Errorf("cached %v of %v", got[tracing.CachedTokens], prompt)
	}
	if id, ok := got[tracing.Session].(string); !ok || len(id) != 16 || strings.Contains(id, "alice") {
		t.Errorf("session %v", got[tracing.Session])
	}
	plan := named(t, spans, "plan")
	holds(t, plan, map[string]any{tracing.Messages: int64(6), tracing.Documents: int64(18), tracing.References: int64(6)})
	if len(plan.Events) != 2 || plan.Events[0].Name != tracing.Ordered ||
		attributesOf(plan.Events[0].Attributes)[tracing.Documents] != int64(6) {
		t.Errorf("orders: %v", plan.Events)
	}
	forward := named(t, spans, "forward")
	holds(t, forward, map[string]any{tracing.StatusCode: int64(200), tracing.Address: "127.0.0.1", tracing.Method: "POST"})
	if len(forward.Events) != 1 || forward.Events[0].Name != tracing.FirstByte || forward.SpanKind != trace.SpanKindClient {
		t.Errorf("%v %v", forward.SpanKind, forward.Events)
	}
	h := s.engine.last(t)
	if want := "00-" + clientTrace + "-" + forward.SpanContext.SpanID().String() + "-01"; h.Get("Traceparent") != want ||
		h.Get("Tracestate") != "a=1" {
		t.Errorf("the engine got %v, want %s", h, want)
	}
	if !strings.Contains(s.log.String(), "trace_id="+clientTrace) {
		t.Error(s.log)
	}
}

// What passes without a plan has the spans of what is done with it.
func TestSpansOfOtherRequests(t *testing.T) {
	s := serveTraced(t, func(c *settings.Config) { c.HoldOut = 1 })
	s.engine.answer = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/embeddings" {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":64}}}`)
	}
	for path, c := range map[string]struct {
		body  any
		names string
		want  map[string]any
	}{
		"/v1/chat/completions": {
			asking("held out?", 0), "forward,parse,read",
			map[string]any{tracing.Group: "held-out", tracing.CachedTokens: int64(64), tracing.PredictedTokens: nil},
		},
		"/v1/completions": {
			object{"prompt": "p", "model": "a model"},
			"forward,read",
			map[string]any{tracing.Group: "plain", tracing.PromptTokens: int64(100), tracing.Model: nil},
		},
		"/v1/embeddings": {object{"input": "text"}, "forward", map[string]any{tracing.StatusCode: int64(429), tracing.Group: nil}},
		"/v1/messages":   {"no conversation", "forward,parse,read", map[string]any{tracing.StatusCode: int64(200)}},
		"/reorder":       {object{"context": [][]int{{1, 2, 3}}}, "", map[string]any{tracing.Route: "/reorder"}},
	} {
		s.post(t, path, c.body)
		spans := s.ended(t, 1)
		names := map[string]bool{}
		for _, x := range spans {
			names[x.Name] = true
		}
		server := named(t, spans, "POST "+path)
		delete(names, server.Name)
		if got := strings.Join(slices.Sorted(maps.Keys(names)), ","); got != c.names {
			t.Errorf("%s: %s, want %s", path, got, c.names)
		}
		holds(t, server, c.want)
	}
	s.send(t, "/v1/chat/completions", []byte("{"))
	if p := named(t, s.ended(t, 1), "parse"); attributesOf(p.Attributes)[tracing.ErrorType] != "invalid" {
		t.Errorf("broken JSON: %v", p.Attributes)
	}
}

// The span of an answer that is a stream lasts until its end, and has an event where it began.
func TestSpanOfAStream(t *testing.T) {
	s := serveTraced(t, nil)
	goOn := make(chan struct{})
	s.engine.answer = func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"a\":1}\n\n")
		w.(http.Flusher).Flush()
		<-goOn
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}
	text, err := json.Marshal(asking("stream?", 0))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/chat/completions", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	for _, x := range s.ended(t, 0) {
		if x.Name == "forward" || x.SpanKind == trace.SpanKindServer {
			t.Errorf("%s has ended before the stream did", x.Name)
		}
	}
	between := time.Now()
	close(goOn)
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	forward := named(t, s.ended(t, 1), "forward")
	if len(forward.Events) != 1 || forward.Events[0].Time.After(between) || forward.EndTime.Before(between) {
		t.Errorf("first byte %v, half %v, end %v", forward.Events, between, forward.EndTime)
	}
}

// An engine that is gone, or that leaves in the middle: the spans say so.
func TestSpansOfFailures(t *testing.T) {
	s := serveTraced(t, nil)
	s.engine.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "half an ans")
		panic(http.ErrAbortHandler)
	}
	s.post(t, "/v1/chat/completions", asking("half?", 0))
	spans := s.ended(t, 1)
	if f := named(t, spans, "forward"); attributesOf(f.Attributes)[tracing.ErrorType] == nil || f.Status.Code == 0 {
		t.Errorf("broken off: %v %v", f.Attributes, f.Status)
	}
	if x := named(t, spans, "POST /v1/chat/completions"); x.Status.Code == 0 {
		t.Errorf("broken off: %v %v", x.Attributes, x.Status)
	}
	s.engine.Close()
	if code := s.post(t, "/v1/chat/completions", asking("anybody?", 0)); code != http.StatusBadGateway {
		t.Error(code)
	}
	spans = s.ended(t, 1)
	holds(t, named(t, spans, "forward"), map[string]any{tracing.ErrorType: "connection"})
	holds(t, named(t, spans, "POST /v1/chat/completions"), map[string]any{tracing.StatusCode: int64(502), tracing.ErrorType: "502"})
}

// Whatever is asked, nothing of it stands in a span: not of a text, a name of a session, a tool, a header, or a query.
func TestNoPromptInSpans(t *testing.T) {
	s := serveTraced(t, nil)
	const marker = "hush"
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z <>/\n"{}]{0,20}` + marker + `[a-z <>/\n"{}]{0,20}`)
		text := rapid.Custom(func(t *rapid.T) string {
			docs := rapid.SliceOfN(word, 1, 4).Draw(t, "docs")
			switch rapid.SampledFrom([]string{"tags", "numbers", "results", "plain"}).Draw(t, "form") {
			case "tags":
				return "<documents><document>" + strings.Join(docs, "</document><document>") + "</document></documents>"
			case "numbers":
				return "[1] " + strings.Join(docs, "\n[2] ")
			case "results":
				out, _ := json.Marshal(object{"results": []object{{"url": docs[0], "text": docs[0]}, {"url": "b" + docs[0]}}})
				return string(out)
			default:
				return strings.Repeat(strings.Join(docs, "\n"), 10)
			}
		})
		messages := []object{
			{"role": "system", "content": text.Draw(t, "system")},
			{"role": word.Draw(t, "role"), "content": text.Draw(t, "user")},
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "results") {
			id := fmt.Sprint(word.Draw(t, "id"), i)
			messages = append(
				messages,
				object{
					"role":       "assistant",
					"tool_calls": []object{{"id": id, "function": object{"name": word.Draw(t, "tool"), "arguments": text.Draw(t, "arguments")}}},
				},
				object{"role": "tool", "tool_call_id": id, "content": text.Draw(t, "result")},
			)
		}
		body := object{
			"messages": messages,
			"input":    messages,
			"prompt":   text.Draw(t, "prompt"),
			"user":     word.Draw(t, "name"),
			"model":    marker + " " + word.Draw(t, "model"),
		}
		path := rapid.SampledFrom([]string{
			"/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/completions", "/v1/embeddings",
			"/v1/" + marker, "/" + marker, "/reorder",
		}).
			Draw(t, "path")
		if rapid.Bool().Draw(t, "answer") {
			s.engine.mu.Lock()
			status := rapid.SampledFrom([]int{200, 400, 503}).Draw(t, "status")
			s.engine.answer = func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(status)
				_, _ = io.WriteString(w, marker)
			}
			s.engine.mu.Unlock()
		}
		sent, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.IntRange(0, 9).Draw(t, "broken") == 0 {
			sent = sent[:len(sent)-1]
		}
		s.send(
			t,
			path+"?q="+marker,
			sent,
			"X-Contextpilot-Session",
			marker,
			"Authorization",
			"Bearer "+marker,
			"X-Other",
			marker,
			"Traceparent",
			marker,
			"Baggage",
			"a="+marker,
		)
		for _, x := range s.ended(t, 1) {
			all := fmt.Sprintf("%s %v %v %v %v %v", x.Name, x.Attributes, x.Events, x.Links, x.Status, x.SpanContext.TraceState())
			if strings.Contains(all, marker) {
				t.Fatalf("%s shows what was sent: %s", x.Name, all)
			}
		}
	})
}

// Without tracing, and without a plan to trace, the client's headers pass byte for byte.
func TestTraceparentPassesWhenOff(t *testing.T) {
	s := serveTraced(t, func(c *settings.Config) { c.Trace.Sample = 0 })
	if s.tracer != nil {
		t.Fatal("tracing is on")
	}
	for _, values := range [][]string{
		{traceparent},
		{"not one"},
		{traceparent, traceparent},
		{"00-" + clientTrace + "-" + clientSpan + "-00"},
	} {
		s.post(t, "/v1/chat/completions", asking("off?", 0), flat("Traceparent", values, "Tracestate", []string{"a=1", "b=2,,"})...)
		h := s.engine.last(t)
		if !slices.Equal(h["Traceparent"], values) || !slices.Equal(h["Tracestate"], []string{"a=1", "b=2,,"}) {
			t.Errorf("%q arrived as %v", values, h)
		}
	}
	s.post(t, "/v1/chat/completions", asking("none?", 0))
	if h := s.engine.last(t); h["Traceparent"] != nil {
		t.Error(h)
	}
	if n := counterOf(t, s.registry, "exported"); n != -1 {
		t.Error("counters of spans without spans")
	}
}

func flat(name string, values []string, name2 string, values2 []string) (out []string) {
	for _, v := range values {
		out = append(out, name, v)
	}
	for _, v := range values2 {
		out = append(out, name2, v)
	}
	return out
}

// A client that does not want to be traced is not, but its trace goes on to the engine.
func TestSampling(t *testing.T) {
	s := serveTraced(t, nil)
	s.post(t, "/v1/chat/completions", asking("seen?", 0), "Traceparent", strings.TrimSuffix(traceparent, "01")+"00")
	h := s.engine.last(t).Get("Traceparent")
	if !strings.HasPrefix(h, "00-"+clientTrace+"-") || !strings.HasSuffix(h, "-00") || strings.Contains(h, clientSpan) {
		t.Error(h)
	}
	s.post(t, "/v1/chat/completions", asking("and now?", 0))
	for _, x := range s.ended(t, 1) {
		if x.SpanContext.TraceID().String() == clientTrace {
			t.Errorf("%s was recorded", x.Name)
		}
	}
}
