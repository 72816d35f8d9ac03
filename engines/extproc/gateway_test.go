package extproc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/ragpilot/ragpilot/engines/extproc"
)

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
		send(&pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseBody{ResponseBody: &pb.HttpBody{
			Body:        []byte(p),
			EndOfStream: i == len(parts)-1,
		}}})
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
