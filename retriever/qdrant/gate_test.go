package qdrant_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// gate is a fake proxy in front of a real server: it refuses wrong keys, holds calls back and can be killed. What passes
// it passes as it is.
type gate struct {
	addr   string
	opts   gateOptions
	server *grpc.Server
	to     *grpc.ClientConn
	calls  atomic.Int64
	inside chan struct{} // gets an element for each call that is held
}

type gateOptions struct {
	key  string // that calls must have; empty: any
	hold bool   // calls wait until they are canceled or the gate is killed
	fail int64  // so many calls, the first ones, are answered with Unavailable
}

func newGate(t testing.TB, addr string, opts gateOptions) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the test
	if err != nil {
		t.Fatal(err)
	}
	to, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{}), grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{addr: l.Addr().String(), opts: opts, to: to, inside: make(chan struct{}, 100)}
	g.server = grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(g.handle), grpc.MaxRecvMsgSize(64<<20))
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := g.server.Serve(l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		g.server.Stop()
		serving.Wait()
		if err := to.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// handle passes one unary call on.
func (g *gate) handle(_ any, stream grpc.ServerStream) error {
	ctx := stream.Context()
	md, _ := metadata.FromIncomingContext(ctx)
	if keys := md.Get("api-key"); g.opts.key != "" && (len(keys) != 1 || keys[0] != g.opts.key) {
		return status.Error(codes.Unauthenticated, "Invalid API key or JWT")
	}
	if g.calls.Add(1) <= g.opts.fail {
		return status.Error(codes.Unavailable, "the gate is not open yet")
	}
	if g.opts.hold {
		g.inside <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	var in, out []byte
	if err := stream.RecvMsg(&in); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	method, _ := grpc.MethodFromServerStream(stream)
	if err := g.to.Invoke(ctx, method, &in, &out); err != nil {
		return err
	}
	return stream.SendMsg(&out)
}

// kill ends the gate and all its connections, as a server that crashes does.
func (g *gate) kill() { g.server.Stop() }

// raw is a codec that leaves messages as they are.
type raw struct{}

var _ encoding.CodecV2 = raw{}

func (raw) Name() string { return "raw" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
