package openai_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// A server that closes each connection behind an answer, without saying so, is no failure and costs no wait: llama-server does so.
func TestConnectionsThatAServerCloses(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				request, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				if key, ok := request.Header["Idempotency-Key"]; ok {
					t.Errorf("the header Idempotency-Key was sent: %q", key)
				}
				_, _ = io.Copy(io.Discard, request.Body)
				served.Add(1)
				const body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"yes\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
				_, _ = io.WriteString(conn, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body))
				_, _ = in.Peek(1) // the next request, which is not answered
			}()
		}
	}()
	defer listener.Close()
	engine, err := openai.New(openai.Config{BaseURL: "http://" + listener.Addr().String(), Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	for i := range 20 {
		answer, err := engine.Generate(t.Context(), engines.Request{Messages: []engines.Message{{Role: engines.User, Content: "?"}}}, nil)
		if err != nil || answer.Text != "yes" {
			t.Fatalf("request %d: %q, %v", i, answer.Text, err)
		}
	}
	if served.Load() != 20 {
		t.Errorf("%d requests were answered, want 20", served.Load())
	}
}
