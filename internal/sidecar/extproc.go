package sidecar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ragpilot/ragpilot/engines/extproc"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

// ServeExternalProcessing answers Envoy's questions about requests (envoy.service.ext_proc.v3) on a listener until ctx ends, and
// closes it: bodies are rewritten as the proxy does it, and the gateway routes them. tenantHeader, if not empty, names the tenant;
// authentication is the gateway's. Exchanges under way get drain to end.
func (a *API) ServeExternalProcessing(
	ctx context.Context, l net.Listener, tenantHeader string, maxBody int64, drain time.Duration, log *slog.Logger,
) error {
	s, err := extproc.New(extproc.Options{
		Decider: extproc.DeciderFunc(func(ctx context.Context, r extproc.Request) (extproc.Decision, error) {
			return a.decide(ctx, r, tenantHeader)
		}),
		MaxBody: int(maxBody), Log: log,
	})
	if err != nil {
		return err
	}
	g := grpc.NewServer(grpc.MaxRecvMsgSize(int(maxBody) + 1<<20))
	pb.RegisterExternalProcessorServer(g, s)
	alive := health.NewServer()
	for _, name := range []string{"liveness", "readiness", pb.ExternalProcessor_ServiceDesc.ServiceName} {
		alive.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}
	healthpb.RegisterHealthServer(g, alive)
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("external processing on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	alive.Shutdown()
	cut := time.AfterFunc(drain, g.Stop)
	g.GracefulStop()
	cut.Stop()
	if err := <-ended; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("external processing on %s: %w", l.Addr(), err)
	}
	return nil
}

// decide plans a request that a gateway forwards. One without a valid tenant is forwarded as it came.
func (a *API) decide(ctx context.Context, r extproc.Request, tenantHeader string) (extproc.Decision, error) {
	if tenantHeader != "" {
		values := r.Header.Values(tenantHeader)
		switch {
		case len(values) == 0:
		case len(values) > 1 || !tenant.Valid(values[0]):
			return extproc.Decision{}, fmt.Errorf("header %s: %s", tenantHeader, tenant.Want)
		default:
			ctx = tenant.With(ctx, values[0])
		}
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.Path, http.NoBody)
	if err != nil {
		return extproc.Decision{}, err
	}
	req.Header = r.Header
	made := a.proxy.Rewrite(req, r.Body)
	d := extproc.Decision{Answer: made.Answer, Ended: func(head, tail []byte, err error) {
		if errors.Is(err, extproc.ErrNoBody) { // it was answered, and how is not known
			err = nil
		}
		made.Ended(head, tail, err)
	}}
	if made.Body != nil && !bytes.Equal(made.Body, r.Body) {
		d.Body = made.Body
	}
	return d, nil
}
