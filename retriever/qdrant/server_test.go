package qdrant_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync/atomic"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// examples counts the collections of examples.
var examples atomic.Int64

// server returns where the examples' Qdrant is, and the name of a collection that is not there: the real server at
// QDRANT_ADDR, or else a fake of one that listens on this machine. remove takes both away.
func server() (addr, collection string, remove func()) {
	collection = fmt.Sprintf("ragpilot-example-%d-%d", os.Getpid(), examples.Add(1))
	if addr = os.Getenv("QDRANT_ADDR"); addr != "" {
		return addr, collection, func() {
			tcp, err := net.ResolveTCPAddr("tcp", addr)
			check(err)
			client, err := api.NewClient(&api.Config{Host: tcp.IP.String(), Port: tcp.Port, PoolSize: 1, SkipCompatibilityCheck: true})
			check(err)
			check(client.DeleteCollection(context.Background(), collection))
			check(client.Close())
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it waits for nothing
	check(err)
	f := &fake{collections: map[string]*fakeCollection{}}
	s := grpc.NewServer()
	api.RegisterPointsServer(s, fakePoints{fake: f})
	api.RegisterCollectionsServer(s, fakeCollections{fake: f})
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	return listener.Addr().String(), collection, func() {
		s.Stop()
		check(<-served)
	}
}

// handbook are the documents that the examples search.
func handbook() []store.Document {
	return []store.Document{
		{ID: "pumps.md#0", Text: "Pumps move water.", Metadata: map[string]any{"lang": "en"}},
		{ID: "valves.md#0", Text: "Valves hold water back.", Metadata: map[string]any{"lang": "en"}},
		{ID: "pumpen.md#0", Text: "Pumpen bewegen Wasser.", Metadata: map[string]any{"lang": "de"}},
	}
}

// check stands for what a program does with an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
