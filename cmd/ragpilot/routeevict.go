package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// evictions takes what replicas' caches lose: POST /N/evict with the IDs of requests, as for a sidecar, from replica N.
type evictions struct {
	server *http.Server
	ended  chan struct{} // closed when server serves no more
	mu     sync.Mutex
	to     []*openai.Engine // guarded by mu
}

// listenForEvictions serves until close is called.
func listenForEvictions(address string) (*evictions, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	x := &evictions{ended: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{replica}/evict", x.serve)
	x.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(x.ended)
		_ = x.server.Serve(listener)
	}()
	return x, nil
}

func (x *evictions) close() {
	_ = x.server.Close()
	<-x.ended
}

// reportTo says which engines report the evictions from now on.
func (x *evictions) reportTo(list []*openai.Engine) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.to = list
}

// maxEvictions bounds the body of one call in bytes.
const maxEvictions = 16 << 20

func (x *evictions) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		IDs []string `json:"request_ids"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxEvictions)).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	engine, err := x.engine(r.PathValue("replica"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	events := make([]contextpilot.Event, len(body.IDs))
	for i, id := range body.IDs {
		events[i] = contextpilot.Event{Kind: contextpilot.Gone, Request: id}
	}
	engine.Report(events...)
}

func (x *evictions) engine(number string) (*openai.Engine, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil, fmt.Errorf("replica %q: %w", number, errors.Unwrap(err))
	}
	if n < 0 || n >= len(x.to) {
		return nil, fmt.Errorf("replica %d: there are %d", n, len(x.to))
	}
	return x.to[n], nil
}
