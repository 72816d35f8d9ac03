package qdrantconn

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// TestServerComesBack: however long the server was away, the connection stands a second after it is back. The clock is
// that of synctest.
func TestServerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe, server := bufconn.Listen(1<<10), grpc.NewServer()
		served := make(chan error, 1)
		go func() { served <- server.Serve(pipe) }()
		var away atomic.Bool
		options := append(Config{MaxMessageBytes: 1 << 20}.options(),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				if away.Load() {
					return nil, errors.New("connection refused")
				}
				return pipe.DialContext(ctx)
			}))
		for _, outage := range []time.Duration{time.Second, 5 * time.Second, 10 * time.Minute} {
			away.Store(true)
			conn, err := grpc.NewClient("passthrough:///fake", options...)
			if err != nil {
				t.Fatal(err)
			}
			conn.Connect()
			time.Sleep(outage)
			if state := conn.GetState(); state != connectivity.TransientFailure && state != connectivity.Connecting {
				t.Errorf("%v without a server: the connection is %v", outage, state)
			}
			away.Store(false)
			time.Sleep(time.Second)
			synctest.Wait()
			if state := conn.GetState(); state != connectivity.Ready {
				t.Errorf("a second after an outage of %v the connection is %v", outage, state)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
