package qdrant_test

import (
	"context"
	"errors"
	"testing"
	"time"

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
