package sidecar_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// TestExternalProcessing: a gateway that asks over Envoy's protocol gets the bodies that the proxy would have forwarded, one
// tenant knows nothing of the other, and the index learns what became of each request.
func TestExternalProcessing(t *testing.T) {
	cfg := settings.Default()
	cfg.InferAPIURL = "http://127.0.0.1:1" // nothing is forwarded
	api, err := sidecar.New(cfg, sidecar.Options{Live: settings.NewLive(cfg)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- api.ServeExternalProcessing(ctx, l, "X-Team", 1<<20, time.Second, nil) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	client := pb.NewExternalProcessorClient(conn)
	up, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "readiness"})
	if err != nil || up.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Error(up, err)
	}

	body, result := gatewayAsks(t, client, "a", docsChat("one?", passage("x"), passage("y"), passage("z")))
	if body != "" || result != "" {
		t.Errorf("the first request was changed: %.200s %s", body, result)
	}
	body, result = gatewayAsks(t, client, "a", docsChat("two?", passage("z"), passage("w"), passage("x")))
	if x, w := strings.Index(body, "the passage x"), strings.Index(body, "the passage w"); x < 0 || w < 0 || x > w {
		t.Errorf("the second request does not begin as the first: x at %d, w at %d", x, w)
	}
	var said struct {
		Reordered bool `json:"documents_reordered"`
	}
	if err := json.Unmarshal([]byte(result), &said); err != nil || !said.Reordered {
		t.Error(result, err)
	}
	if body, _ := gatewayAsks(t, client, "b", docsChat("two?", passage("z"), passage("w"), passage("x"))); body != "" {
		t.Error("another tenant's request was ordered by what it cannot know")
	}
	if body, _ := gatewayAsks(t, client, "a", "no JSON"); body != "" {
		t.Error("what is not understood was changed")
	}

	for _, team := range []string{strings.Repeat("a", 129), "a b", "ä"} {
		for _, documents := range []string{
			docsChat("one?", passage("x"), passage("y"), passage("z")),
			docsChat("two?", passage("z"), passage("w"), passage("x")),
		} {
			if body, _ := gatewayAsks(t, client, team, documents); body != "" {
				t.Errorf("a request of tenant %.20q was planned", team)
			}
		}
	}

	_ = conn.Close()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := api.Close(); err != nil {
		t.Error(err)
	}
}

// gatewayAsks is one buffered exchange. It returns the new body, "" for none, and the result header of the answer.
func gatewayAsks(t *testing.T, client pb.ExternalProcessorClient, team, body string) (changed, result string) {
	t.Helper()
	stream, err := client.Process(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(m *pb.ProcessingRequest) *pb.ProcessingResponse {
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	headers := func(kv ...string) *pb.HttpHeaders {
		m := &corev3.HeaderMap{}
		for i := 0; i < len(kv); i += 2 {
			m.Headers = append(m.Headers, &corev3.HeaderValue{Key: kv[i], RawValue: []byte(kv[i+1])})
		}
		return &pb.HttpHeaders{Headers: m}
	}
	ask(&pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestHeaders{
		RequestHeaders: headers(":method", "POST", ":path", "/v1/chat/completions", "x-team", team),
	}})
	r := ask(
		&pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestBody{RequestBody: &pb.HttpBody{Body: []byte(body), EndOfStream: true}}},
	)
	changed = string(r.GetRequestBody().GetResponse().GetBodyMutation().GetBody())
	r = ask(&pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseHeaders{ResponseHeaders: headers(":status", "200")}})
	for _, o := range r.GetResponseHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
		if strings.EqualFold(o.GetHeader().GetKey(), "X-Contextpilot-Result") {
			result = string(o.GetHeader().GetRawValue())
		}
	}
	answer := `{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":0}}}`
	ask(
		&pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseBody{ResponseBody: &pb.HttpBody{Body: []byte(answer), EndOfStream: true}}},
	)
	_ = stream.CloseSend()
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	return changed, result
}
