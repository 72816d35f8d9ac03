package qdrant_test

import (
	"context"
	"errors"
	"testing"
	"time"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/qdrant"
)

// Callers need not know which backend it is.
func TestNobodyThere(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := qdrant.Open(ctx, qdrant.Options{Addr: "127.0.0.1:1"})
	if !errors.Is(err, memory.ErrUnavailable) || !errors.Is(err, qdrant.ErrUnavailable) || errors.Is(err, memory.ErrUnauthorized) {
		t.Errorf("Open: %v, want ErrUnavailable", err)
	}
}

// Of a server that says when to come back the client makes an error without a code. Nobody needs to listen for that.
func TestRateLimited(t *testing.T) {
	always := func() bool { return true }
	_, err := qdrant.Open(t.Context(), qdrant.Options{Client: dial(t, "127.0.0.1:1", fault(limited).when(always))})
	if _, ok := errors.AsType[*api.QdrantResourceExhaustedError](err); !ok || !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("Open: %v, want the client's error and ErrUnavailable", err)
	}
}
