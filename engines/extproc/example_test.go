package extproc_test

import (
	"context"
	"fmt"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"

	"github.com/ragpilot/ragpilot/engines/extproc"
)

// A filter that only looks, registered as Envoy expects it.
func Example() {
	server, err := extproc.New(extproc.Options{Decider: extproc.DeciderFunc(func(_ context.Context, r extproc.Request) (extproc.Decision,
		error,
	) {
		fmt.Println(r.Path)
		return extproc.Decision{}, nil // passes as it came
	})})
	if err != nil {
		panic(err)
	}
	g := grpc.NewServer()
	pb.RegisterExternalProcessorServer(g, server)
	for name := range g.GetServiceInfo() {
		fmt.Println(name)
	}
	// Output: envoy.service.ext_proc.v3.ExternalProcessor
}
