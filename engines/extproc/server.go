package extproc

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// Names of the endpoint picker protocol.
const (
	endpointKey   = "x-gateway-destination-endpoint"
	subsetKey     = "x-gateway-destination-endpoint-subset"
	servedKey     = "x-gateway-destination-endpoint-served"
	lbNamespace   = "envoy.lb"
	hintNamespace = "envoy.lb.subset_hint"
)

// Options configures a [Server].
type Options struct {
	Decider Decider // required
	// MaxBody is the length in bytes up to which bodies are looked at; longer ones pass as they came, if the gateway gave no
	// subset, and are answered with 413 otherwise. 0: 16 MiB.
	MaxBody int
	Log     *slog.Logger // nil: nothing is logged
}

// Server implements Envoy's ExternalProcessor service. Safe for concurrent use.
type Server struct {
	pb.UnimplementedExternalProcessorServer

	opt Options
}

// New returns a Server, to be registered with [pb.RegisterExternalProcessorServer].
func New(o Options) (*Server, error) {
	if o.Decider == nil {
		return nil, errors.New("extproc: Options.Decider is nil")
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 16 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{opt: o}, nil
}

// Process serves one HTTP exchange.
func (s *Server) Process(stream pb.ExternalProcessor_ProcessServer) error {
	x := &exchange{s: s, stream: stream}
	err := x.run()
	x.end(ErrBrokenOff)
	if errors.Is(err, io.EOF) || status.Code(err) == codes.Canceled || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// exchange is one HTTP request with its answer.
type exchange struct {
	s      *Server
	stream pb.ExternalProcessor_ProcessServer

	duplexRequest, duplexResponse bool // body modes
	buffered                      bool // the request's body comes whole in one message, even if trailers follow
	request                       Request
	passing                       bool // the body is too long: its rest passes
	decision                      Decision
	decided                       bool
	began, ended                  bool // the answer
	head, tail                    []byte
}

func (x *exchange) run() error {
	for {
		msg, err := x.stream.Recv()
		if err != nil {
			return err
		}
		if c := msg.GetProtocolConfig(); c != nil {
			x.buffered = c.GetRequestBodyMode() == extprocv3.ProcessingMode_BUFFERED
			x.duplexRequest = c.GetRequestBodyMode() == extprocv3.ProcessingMode_FULL_DUPLEX_STREAMED
			x.duplexResponse = c.GetResponseBodyMode() == extprocv3.ProcessingMode_FULL_DUPLEX_STREAMED
		}
		answers, err := x.take(msg)
		if err != nil {
			return err
		}
		for _, a := range answers {
			if err := x.stream.Send(a); err != nil {
				return err
			}
			if a.GetImmediateResponse() != nil {
				return nil
			}
		}
	}
}

// take handles one message of the gateway.
func (x *exchange) take(msg *pb.ProcessingRequest) ([]*pb.ProcessingResponse, error) {
	switch m := msg.GetRequest().(type) {
	case *pb.ProcessingRequest_RequestHeaders:
		x.readHeaders(m.RequestHeaders, msg.GetMetadataContext())
		if m.RequestHeaders.GetEndOfStream() {
			return x.decide(true), nil
		}
		if x.duplexRequest {
			return nil, nil // answered together with the body, when all of it is here
		}
		return one(&pb.ProcessingResponse{Response: &pb.ProcessingResponse_RequestHeaders{RequestHeaders: &pb.HeadersResponse{}}}), nil
	case *pb.ProcessingRequest_RequestBody:
		return x.body(m.RequestBody), nil
	case *pb.ProcessingRequest_RequestTrailers:
		return x.requestTrailers(), nil
	case *pb.ProcessingRequest_ResponseHeaders:
		return x.responseHeaders(m.ResponseHeaders, msg.GetMetadataContext()), nil
	case *pb.ProcessingRequest_ResponseBody:
		return x.responseBody(m.ResponseBody), nil
	case *pb.ProcessingRequest_ResponseTrailers:
		x.end(nil)
		return one(&pb.ProcessingResponse{Response: &pb.ProcessingResponse_ResponseTrailers{ResponseTrailers: &pb.TrailersResponse{}}}), nil
	}
	return nil, status.Errorf(codes.InvalidArgument, "message %T", msg.GetRequest())
}

func one(r *pb.ProcessingResponse) []*pb.ProcessingResponse { return []*pb.ProcessingResponse{r} }

func (x *exchange) readHeaders(h *pb.HttpHeaders, meta *corev3.Metadata) {
	x.request.Header = http.Header{}
	for _, v := range h.GetHeaders().GetHeaders() {
		text := textOf(v)
		switch v.GetKey() {
		case ":method":
			x.request.Method = text
		case ":path":
			x.request.Path = text
		case ":authority":
			x.request.Authority = text
		default:
			if !strings.HasPrefix(v.GetKey(), ":") {
				x.request.Header.Add(v.GetKey(), text)
			}
		}
	}
	if hint := meta.GetFilterMetadata()[hintNamespace].GetFields()[subsetKey]; hint != nil {
		x.request.Subset = addresses(hint)
	}
}

// textOf returns a header's value, which is in one of two fields.
func textOf(v *corev3.HeaderValue) string { return cmp.Or(string(v.GetRawValue()), v.GetValue()) }

// addresses reads a list of endpoints, or a text of them with commas between.
func addresses(v *structpb.Value) []string {
	out := []string{}
	texts := strings.Split(v.GetStringValue(), ",")
	if l := v.GetListValue(); l != nil {
		texts = nil
		for _, e := range l.GetValues() {
			texts = append(texts, e.GetStringValue())
		}
	}
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			out = append(out, t)
		}
	}
	return out
}

// body takes a piece of the request's body in.
func (x *exchange) body(b *pb.HttpBody) []*pb.ProcessingResponse {
	if x.passing {
		return one(requestBody(streamed(b.GetBody(), b.GetEndOfStream()), nil))
	}
	if x.request.Body == nil {
		x.request.Body = []byte{} // not nil from here on: what is answered is the body, though it may have no bytes
	}
	x.request.Body = append(x.request.Body, b.GetBody()...)
	if len(x.request.Body) > x.s.opt.MaxBody {
		return x.tooLong(b.GetEndOfStream())
	}
	if !b.GetEndOfStream() && !x.buffered {
		if x.duplexRequest {
			return nil
		}
		// Without the duplex mode every message asks for an answer; STREAMED is of no use here, as the beginning has to wait.
		return one(requestBody(nil, nil))
	}
	return x.decide(true)
}

// tooLong lets a body pass that is too long to be looked at.
func (x *exchange) tooLong(last bool) []*pb.ProcessingResponse {
	x.decided = true
	if x.request.Subset != nil {
		return one(refuse(typev3.StatusCode_PayloadTooLarge, "the body is too long to pick an endpoint by"))
	}
	body := x.request.Body
	x.request.Body = nil
	if !x.duplexRequest {
		return one(requestBody(nil, nil))
	}
	x.passing = true
	return append(x.headersFirst(nil, nil), requestBody(streamed(body, last), nil))
}

// requestTrailers ends a body that has trailers. Without the duplex mode all before them has been answered: it passes as it came.
func (x *exchange) requestTrailers() []*pb.ProcessingResponse {
	var out []*pb.ProcessingResponse
	switch {
	case x.decided:
	case x.duplexRequest:
		out = x.decide(false)
	case x.request.Subset != nil:
		return one(refuse(typev3.StatusCode_ServiceUnavailable, "no endpoint could be picked"))
	}
	return append(out, &pb.ProcessingResponse{Response: &pb.ProcessingResponse_RequestTrailers{RequestTrailers: &pb.TrailersResponse{}}})
}

// decide asks the decider and answers what is due. end says that the body is the request's end; otherwise trailers follow it.
func (x *exchange) decide(end bool) []*pb.ProcessingResponse {
	x.decided = true
	d, err := x.ask()
	switch {
	case errors.Is(err, ErrNoEndpoint):
		return one(refuse(typev3.StatusCode_ServiceUnavailable, err.Error()))
	case errors.Is(err, ErrBusy):
		return one(refuse(typev3.StatusCode_TooManyRequests, err.Error()))
	case err != nil && x.request.Subset != nil:
		x.s.opt.Log.Error("no decision", "path", x.request.Path, "error", err)
		return one(refuse(typev3.StatusCode_ServiceUnavailable, "no endpoint could be picked"))
	case err != nil:
		x.s.opt.Log.Warn("no decision: the request passes as it came", "path", x.request.Path, "error", err)
		d = Decision{}
	}
	body := x.request.Body
	switch {
	case body == nil:
		d.Body = nil // there is none to replace
	case d.Body != nil:
		body = d.Body
	}
	x.decision = d
	set := x.mutation(d)
	meta := metadata(d.Endpoints)
	switch {
	case body == nil:
		return x.headersFirst(set, meta)
	case x.duplexRequest:
		return append(x.headersFirst(set, meta), requestBody(streamed(body, end), nil))
	}
	r := requestBody(nil, set)
	if d.Body != nil {
		r.GetRequestBody().Response.BodyMutation = &pb.BodyMutation{Mutation: &pb.BodyMutation_Body{Body: d.Body}}
	}
	r.DynamicMetadata = meta
	return one(r)
}

// ask calls the decider, and sees to it that a subset is kept to.
func (x *exchange) ask() (Decision, error) {
	if x.request.Subset != nil && len(x.request.Subset) == 0 {
		return Decision{}, ErrNoEndpoint
	}
	d, err := x.s.opt.Decider.Decide(x.stream.Context(), x.request)
	if err != nil || x.request.Subset == nil {
		return d, err
	}
	var kept []string
	for _, e := range d.Endpoints {
		if slices.Contains(x.request.Subset, e) {
			kept = append(kept, e)
		}
	}
	if d.Endpoints = kept; len(kept) == 0 {
		return Decision{}, ErrNoEndpoint
	}
	return d, nil
}

// headersFirst answers the request's headers.
func (x *exchange) headersFirst(set *pb.HeaderMutation, meta *structpb.Struct) []*pb.ProcessingResponse {
	return one(&pb.ProcessingResponse{
		Response: &pb.ProcessingResponse_RequestHeaders{RequestHeaders: &pb.HeadersResponse{
			Response: &pb.CommonResponse{HeaderMutation: set, ClearRouteCache: set != nil && meta != nil},
		}},
		DynamicMetadata: meta,
	})
}

// mutation sets the headers that a decision asks for.
func (x *exchange) mutation(d Decision) *pb.HeaderMutation {
	m := headers(d.Header)
	if len(d.Endpoints) > 0 {
		m.SetHeaders = append(m.SetHeaders, header(endpointKey, strings.Join(d.Endpoints, ",")))
	}
	if d.Body != nil {
		m.SetHeaders = append(m.SetHeaders, header("content-length", strconv.Itoa(len(d.Body))))
	}
	if len(m.SetHeaders)+len(m.RemoveHeaders) == 0 {
		return nil
	}
	return m
}

func headers(h http.Header) *pb.HeaderMutation {
	m := &pb.HeaderMutation{}
	for name, values := range h {
		name = strings.ToLower(name)
		if len(values) == 0 {
			m.RemoveHeaders = append(m.RemoveHeaders, name)
		}
		for i, v := range values {
			o := header(name, v)
			if i > 0 {
				o.AppendAction = corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
			}
			m.SetHeaders = append(m.SetHeaders, o)
		}
	}
	return m
}

func header(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, RawValue: []byte(value)},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

// metadata has the endpoints in the second form that the protocol asks for.
func metadata(endpoints []string) *structpb.Struct {
	if len(endpoints) == 0 {
		return nil
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		lbNamespace: structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			endpointKey: structpb.NewStringValue(strings.Join(endpoints, ",")),
		}}),
	}}
}

func requestBody(m *pb.BodyMutation, set *pb.HeaderMutation) *pb.ProcessingResponse {
	return &pb.ProcessingResponse{Response: &pb.ProcessingResponse_RequestBody{RequestBody: &pb.BodyResponse{
		Response: &pb.CommonResponse{BodyMutation: m, HeaderMutation: set},
	}}}
}

func streamed(body []byte, end bool) *pb.BodyMutation {
	piece := &pb.StreamedBodyResponse{Body: body, EndOfStream: end}
	return &pb.BodyMutation{Mutation: &pb.BodyMutation_StreamedResponse{StreamedResponse: piece}}
}

func refuse(code typev3.StatusCode, text string) *pb.ProcessingResponse {
	return &pb.ProcessingResponse{Response: &pb.ProcessingResponse_ImmediateResponse{ImmediateResponse: &pb.ImmediateResponse{
		Status: &typev3.HttpStatus{Code: code}, Body: []byte(text), Details: "ragpilot",
	}}}
}
