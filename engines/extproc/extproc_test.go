package extproc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/ragpilot/ragpilot/engines/extproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial serves a decider over gRPC and returns a client.
func dial(t testing.TB, o extproc.Options) pb.ExternalProcessorClient {
	t.Helper()
	s, err := extproc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l := bufconn.Listen(1 << 20)
	g := grpc.NewServer()
	pb.RegisterExternalProcessorServer(g, s)
	var wg sync.WaitGroup
	wg.Go(func() { _ = g.Serve(l) })
	conn, err := grpc.NewClient("passthrough:///x",
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return l.Dial() }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		g.Stop()
		wg.Wait()
	})
	return pb.NewExternalProcessorClient(conn)
}

// gateway is a fake of Envoy that keeps to its side of the protocol, as far as one exchange goes.
type gateway struct {
	t      testing.TB
	client pb.ExternalProcessorClient
	duplex bool
	chunk  int                 // bytes of a piece of a body
	meta   map[string][]string // subset; nil: none is given
	served string
}

// forwarded is what the gateway sends on.
type forwarded struct {
	Status   int // of an immediate response; 0: it was sent on
	Header   http.Header
	Body     string
	Metadata string // the endpoint that the dynamic metadata names
	Answer   string
	Client   http.Header // headers set in the answer
}

func headerMap(kv ...string) *corev3.HeaderMap {
	m := &corev3.HeaderMap{}
	for i := 0; i < len(kv); i += 2 {
		m.Headers = append(m.Headers, &corev3.HeaderValue{Key: kv[i], RawValue: []byte(kv[i+1])})
	}
	return m
}

func apply(h http.Header, m *pb.HeaderMutation) {
	for _, name := range m.GetRemoveHeaders() {
		h.Del(name)
	}
	for _, o := range m.GetSetHeaders() {
		if o.GetAppendAction() == corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD {
			h.Add(o.GetHeader().GetKey(), string(o.GetHeader().GetRawValue()))
		} else {
			h.Set(o.GetHeader().GetKey(), string(o.GetHeader().GetRawValue()))
		}
	}
}

func (g *gateway) pieces(body string) []string {
	var out []string
	for len(body) > g.chunk {
		out = append(out, body[:g.chunk])
		body = body[g.chunk:]
	}
	return append(out, body)
}

// exchange sends a request and, unless it was refused, an answer.
func (g *gateway) exchange(body, answer string) forwarded {
	g.t.Helper()
	stream, err := g.client.Process(context.Background())
	if err != nil {
		g.t.Fatal(err)
	}
	out := forwarded{Header: http.Header{"Content-Length": {fmt.Sprint(len(body))}}, Client: http.Header{}}
	send := func(m *pb.ProcessingRequest) {
		if err := stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
			g.t.Fatal(err)
		}
	}
	recv := func() *pb.ProcessingResponse {
		m, err := stream.Recv()
		if err != nil {
			g.t.Fatal(err)
		}
		if e := m.GetDynamicMetadata().GetFields()["envoy.lb"].GetStructValue().GetFields()["x-gateway-destination-endpoint"]; e != nil {
			out.Metadata = e.GetStringValue()
		}
		if im := m.GetImmediateResponse(); im != nil {
			out.Status = int(im.GetStatus().GetCode())
			out.Answer = string(im.GetBody())
		}
		return m
	}
	mode := extprocv3.ProcessingMode_BUFFERED
	if g.duplex {
		mode = extprocv3.ProcessingMode_FULL_DUPLEX_STREAMED
	}
	first := &pb.ProcessingRequest{
		Request: &pb.ProcessingRequest_RequestHeaders{RequestHeaders: &pb.HttpHeaders{
			Headers: headerMap(":method", "POST", ":path", "/v1/chat/completions", ":authority", "llm", "content-type", "application/json",
				"x-one", "1"),
			EndOfStream: body == "",
		}},
		ProtocolConfig: &pb.ProtocolConfiguration{RequestBodyMode: mode, ResponseBodyMode: mode},
	}
	if g.meta != nil {
		list := &structpb.ListValue{}
		for _, e := range g.meta["subset"] {
			list.Values = append(list.Values, structpb.NewStringValue(e))
		}
		first.MetadataContext = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
			"envoy.lb.subset_hint": {Fields: map[string]*structpb.Value{"x-gateway-destination-endpoint-subset": structpb.NewListValue(list)}},
		}}
	}
	send(first)
	bodyMessage := func(text string, end bool) *pb.ProcessingRequest {
		return &pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestBody{RequestBody: &pb.HttpBody{Body: []byte(text), EndOfStream: end}}}
	}
	if g.duplex {
		g.requestDuplex(body, send, recv, bodyMessage, &out)
	} else {
		m := recv()
		if out.Status != 0 {
			return out
		}
		apply(out.Header, m.GetRequestHeaders().GetResponse().GetHeaderMutation())
		if body != "" {
			send(bodyMessage(body, true))
			m = recv()
			if out.Status != 0 {
				return out
			}
			apply(out.Header, m.GetRequestBody().GetResponse().GetHeaderMutation())
			out.Body = body
			if b := m.GetRequestBody().GetResponse().GetBodyMutation(); b != nil {
				out.Body = string(b.GetBody())
			}
		}
	}
	if out.Status != 0 {
		return out
	}
	g.answer(answer, send, recv, &out)
	_ = stream.CloseSend()
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		g.t.Error("after the exchange:", err)
	}
	return out
}

func (g *gateway) requestDuplex(
	body string, send func(*pb.ProcessingRequest), recv func() *pb.ProcessingResponse, message func(string, bool) *pb.ProcessingRequest,
	out *forwarded,
) {
	if body != "" {
		parts := g.pieces(body)
		for i, p := range parts {
			send(message(p, i == len(parts)-1))
		}
	}
	m := recv()
	if out.Status != 0 {
		return
	}
	if m.GetRequestHeaders() == nil {
		g.t.Fatalf("the first answer is %T, want that to the headers", m.GetResponse())
	}
	apply(out.Header, m.GetRequestHeaders().GetResponse().GetHeaderMutation())
	for body != "" {
		m = recv()
		s := m.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
		if s == nil {
			g.t.Fatalf("answer %v, want a piece of the body", m)
		}
		out.Body += string(s.GetBody())
		if s.GetEndOfStream() {
			return
		}
	}
}

func (g *gateway) answer(answer string, send func(*pb.ProcessingRequest), recv func() *pb.ProcessingResponse, out *forwarded) {
	m := &pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseHeaders{ResponseHeaders: &pb.HttpHeaders{Headers: headerMap(":status",
		"200")}}}
	if g.served != "" {
		m.MetadataContext = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
			"envoy.lb": {Fields: map[string]*structpb.Value{"x-gateway-destination-endpoint-served": structpb.NewStringValue(g.served)}},
		}}
	}
	send(m)
	apply(out.Client, recv().GetResponseHeaders().GetResponse().GetHeaderMutation())
	parts := g.pieces(answer)
	for i, p := range parts {
		send(&pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseBody{ResponseBody: &pb.HttpBody{Body: []byte(p),
			EndOfStream: i == len(parts)-1}}})
		b := recv().GetResponseBody().GetResponse().GetBodyMutation()
		if s := b.GetStreamedResponse(); s != nil {
			p = string(s.GetBody())
		}
		out.Answer += p
	}
}

// decide is a decider that notes what it is asked.
type decide struct {
	mu       sync.Mutex
	asked    []extproc.Request
	decision extproc.Decision
	err      error
}

func (d *decide) Decide(_ context.Context, r extproc.Request) (extproc.Decision, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, r)
	return d.decision, d.err
}

func modes(t *testing.T, f func(t *testing.T, duplex bool)) {
	for _, duplex := range []bool{false, true} {
		t.Run(fmt.Sprintf("duplex=%t", duplex), func(t *testing.T) { f(t, duplex) })
	}
}

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
		{"trailers", messages{headers(false), body("old", false), trailers}, "new", `headers, body "new", trailers`,
			`headers, piece "new", trailers`, true},
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
