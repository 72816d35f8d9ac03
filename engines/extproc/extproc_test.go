package extproc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/engines/extproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A body in another order and an endpoint reach the gateway, both ways that the protocol asks for, and the end of the answer
// reaches the decider.
func TestDecision(t *testing.T) {
	modes(t, func(t *testing.T, duplex bool) {
		var served, head, tail string
		var status int
		var ended error
		d := &decide{decision: extproc.Decision{
			Endpoints: []string{"10.0.0.2:8000", "[fd00::1]:8000"}, Body: []byte(`{"better":true}`),
			Header: http.Header{"X-One": nil, "X-Request-Id": {"r1"}},
			Answer: func(s int) http.Header { status = s; return http.Header{"X-Contextpilot-Result": {"{}"}} },
			Served: func(e string) { served = e },
			Ended:  func(h, tl []byte, err error) { head, tail, ended = string(h), string(tl), err },
		}}
		g := &gateway{t: t, client: dial(t, extproc.Options{Decider: d}), duplex: duplex, chunk: 10, served: "10.0.0.2:8000"}
		answer := strings.Repeat("data: x\n\n", 10_000)
		got := g.exchange(`{"messages":[{"role":"user"}]}`, answer)
		if d.asked[0].Method != http.MethodPost || d.asked[0].Path != "/v1/chat/completions" || d.asked[0].Authority != "llm" ||
			string(d.asked[0].Body) != `{"messages":[{"role":"user"}]}` || d.asked[0].Header.Get("X-One") != "1" || d.asked[0].Subset != nil {
			t.Errorf("asked %+v", d.asked[0])
		}
		want := http.Header{
			"Content-Length": {"15"}, "X-Request-Id": {"r1"}, "X-Gateway-Destination-Endpoint": {"10.0.0.2:8000,[fd00::1]:8000"},
		}
		if diff := cmp.Diff(want, got.Header); diff != "" {
			t.Error(diff)
		}
		if got.Body != `{"better":true}` || got.Metadata != "10.0.0.2:8000,[fd00::1]:8000" || got.Client.Get("X-Contextpilot-Result") != "{}" {
			t.Errorf("%.300v", got)
		}
		if got.Answer != answer {
			t.Error("the answer was changed")
		}
		if served != "10.0.0.2:8000" || status != 200 || ended != nil || !strings.HasPrefix(answer, head) || !strings.HasSuffix(answer, tail) ||
			len(head) != 16<<10 || len(tail) != 16<<10 {
			t.Error(served, ended, len(head), len(tail))
		}
	})
}

// What is not decided passes as it came.
func TestPasses(t *testing.T) {
	modes(t, func(t *testing.T, duplex bool) {
		for name, o := range map[string]extproc.Options{
			"nothing to do": {Decider: &decide{}},
			"fails":         {Decider: &decide{err: errors.New("cannot")}},
			"too long":      {Decider: &decide{err: errors.New("must not be asked")}, MaxBody: 5},
		} {
			g := &gateway{t: t, client: dial(t, o), duplex: duplex, chunk: 7}
			for _, body := range []string{"", "{}", `{"a":"` + strings.Repeat("b", 100) + `"}`} {
				got := g.exchange(body, "answer")
				if got.Body != body || got.Answer != "answer" || got.Status != 0 || got.Header.Get("Content-Length") != fmt.Sprint(len(body)) {
					t.Errorf("%s: %q: %+v", name, body, got)
				}
			}
		}
	})
}

// Every message of the gateway is answered by one of its kind, also where a body has no bytes and where trailers end the request.
func TestKindsOfAnswers(t *testing.T) {
	headers := func(end bool) *pb.ProcessingRequest {
		return &pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestHeaders{RequestHeaders: &pb.HttpHeaders{EndOfStream: end}}}
	}
	body := func(text string, end bool) *pb.ProcessingRequest {
		return &pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestBody{RequestBody: &pb.HttpBody{Body: []byte(text), EndOfStream: end}}}
	}
	trailers := &pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestTrailers{RequestTrailers: &pb.HttpTrailers{}}}
	type messages = []*pb.ProcessingRequest
	for _, c := range []struct {
		name         string
		sent         messages
		with         string // the body that is decided on
		plain        string // answers in the mode BUFFERED
		duplex       string
		plainIsAsked bool
	}{
		{"no body", messages{headers(true)}, "", "headers", "headers", true},
		{"no body, to be replaced", messages{headers(true)}, "new", "headers", "headers", true},
		{"empty body", messages{headers(false), body("", true)}, "", "headers, body", `headers, piece "" end`, true},
		{"empty body, replaced", messages{headers(false), body("", true)}, "new", `headers, body "new"`, `headers, piece "new" end`, true},
		{"body", messages{headers(false), body("old", true)}, "", "headers, body", `headers, piece "old" end`, true},
		{"body, replaced", messages{headers(false), body("old", true)}, "new", `headers, body "new"`, `headers, piece "new" end`, true},
		{
			"trailers",
			messages{headers(false), body("old", false), trailers},
			"new", `headers, body "new", trailers`,
			`headers, piece "new", trailers`, true,
		},
		{"trailers only", messages{headers(false), trailers}, "new", "headers, trailers", "headers, trailers", false},
	} {
		for _, duplex := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, duplex=%t", c.name, duplex), func(t *testing.T) {
				d := &decide{}
				if c.with != "" {
					d.decision.Body = []byte(c.with)
				}
				mode, want := extprocv3.ProcessingMode_BUFFERED, c.plain
				if duplex {
					mode, want = extprocv3.ProcessingMode_FULL_DUPLEX_STREAMED, c.duplex
				}
				stream, err := dial(t, extproc.Options{Decider: d}).Process(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for i, m := range c.sent {
					m.ProtocolConfig = nil
					if i == 0 {
						m.ProtocolConfig = &pb.ProtocolConfiguration{RequestBodyMode: mode, ResponseBodyMode: mode}
					}
					if err := stream.Send(m); err != nil {
						t.Fatal(err)
					}
				}
				_ = stream.CloseSend()
				var got []string
				for {
					m, err := stream.Recv()
					if err != nil {
						break
					}
					got = append(got, kind(m))
				}
				if got := strings.Join(got, ", "); got != want {
					t.Errorf("answers %s\nwant    %s", got, want)
				}
				if asked := len(d.asked) == 1; asked != (duplex || c.plainIsAsked) {
					t.Errorf("the decider was asked %d times", len(d.asked))
				}
			})
		}
	}
}

// kind says what a message answers, and by which body.
func kind(m *pb.ProcessingResponse) string {
	switch {
	case m.GetRequestHeaders() != nil:
		return "headers"
	case m.GetRequestTrailers() != nil:
		return "trailers"
	case m.GetRequestBody() == nil:
		return fmt.Sprintf("%T", m.GetResponse())
	}
	b := m.GetRequestBody().GetResponse().GetBodyMutation()
	switch s := b.GetStreamedResponse(); {
	case s.GetEndOfStream():
		return fmt.Sprintf("piece %q end", s.GetBody())
	case s != nil:
		return fmt.Sprintf("piece %q", s.GetBody())
	case b != nil:
		return fmt.Sprintf("body %q", b.GetBody())
	}
	return "body"
}

// Subsets are kept to, and where nothing can be picked the status says so.
func TestSubset(t *testing.T) {
	modes(t, func(t *testing.T, duplex bool) {
		for _, c := range []struct {
			picked, subset []string
			err            error
			status         int
			want           string
		}{
			{picked: []string{"a:1", "b:1"}, subset: []string{"b:1", "c:1"}, want: "b:1"},
			{picked: []string{"a:1"}, subset: []string{"b:1"}, status: 503},
			{picked: []string{"a:1"}, subset: []string{}, status: 503},
			{subset: []string{"b:1"}, status: 503},
			{err: extproc.ErrNoEndpoint, status: 503},
			{err: fmt.Errorf("wrapped: %w", extproc.ErrBusy), status: 429},
			{err: errors.New("cannot"), subset: []string{"b:1"}, status: 503},
			{picked: []string{"a:1"}, want: "a:1"},
		} {
			g := &gateway{
				t: t, client: dial(t, extproc.Options{Decider: &decide{decision: extproc.Decision{Endpoints: c.picked}, err: c.err}}),
				duplex: duplex, chunk: 100,
			}
			if c.subset != nil {
				g.meta = map[string][]string{"subset": c.subset}
			}
			got := g.exchange("{}", "answer")
			if got.Status != c.status || got.Metadata != c.want || got.Header.Get("X-Gateway-Destination-Endpoint") != c.want {
				t.Errorf("%+v: %+v", c, got)
			}
		}
		g := &gateway{
			t: t, client: dial(t, extproc.Options{Decider: &decide{}, MaxBody: 5}), duplex: duplex, chunk: 100,
			meta: map[string][]string{"subset": {"a:1"}},
		}
		if got := g.exchange("more than five", ""); got.Status != 413 {
			t.Errorf("%+v", got)
		}
	})
}

// A gateway that goes away in the middle is reported to the decider, once.
func TestBrokenOff(t *testing.T) {
	ended := make(chan error, 2)
	d := &decide{decision: extproc.Decision{Ended: func(_, _ []byte, err error) { ended <- err }}}
	client := dial(t, extproc.Options{Decider: d})
	for _, started := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := client.Process(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestHeaders{RequestHeaders: &pb.HttpHeaders{EndOfStream: true}}})
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		if started {
			_ = stream.Send(&pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseBody{ResponseBody: &pb.HttpBody{Body: []byte("half")}}})
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if err := <-ended; err == nil {
			t.Error("no error for an answer that broke off")
		}
	}
}

// Whatever order messages come in, the server answers or ends the stream with an error, and does not fall over.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5}, true)
	f.Add([]byte{5, 1, 1, 0, 3, 3}, false)
	client := dial(f, extproc.Options{Decider: &decide{decision: extproc.Decision{Body: []byte("x")}}, MaxBody: 8})
	f.Fuzz(func(t *testing.T, kinds []byte, duplex bool) {
		if len(kinds) > 20 {
			t.Skip()
		}
		stream, err := client.Process(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range kinds {
			m := &pb.ProcessingRequest{}
			end := k&8 != 0
			switch k % 8 {
			case 0:
				m.Request = &pb.ProcessingRequest_RequestHeaders{RequestHeaders: &pb.HttpHeaders{EndOfStream: end}}
			case 1:
				m.Request = &pb.ProcessingRequest_RequestBody{RequestBody: &pb.HttpBody{Body: make([]byte, k/16), EndOfStream: end}}
			case 2:
				m.Request = &pb.ProcessingRequest_RequestTrailers{RequestTrailers: &pb.HttpTrailers{}}
			case 3:
				m.Request = &pb.ProcessingRequest_ResponseHeaders{ResponseHeaders: &pb.HttpHeaders{EndOfStream: end}}
			case 4:
				m.Request = &pb.ProcessingRequest_ResponseBody{ResponseBody: &pb.HttpBody{Body: make([]byte, k), EndOfStream: end}}
			case 5:
				m.Request = &pb.ProcessingRequest_ResponseTrailers{}
			}
			if i == 0 && duplex {
				m.ProtocolConfig = &pb.ProtocolConfiguration{RequestBodyMode: extprocv3.ProcessingMode_FULL_DUPLEX_STREAMED}
			}
			if stream.Send(m) != nil {
				break
			}
		}
		_ = stream.CloseSend()
		for err == nil {
			_, err = stream.Recv()
		}
	})
}
