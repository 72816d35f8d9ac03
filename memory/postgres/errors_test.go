package postgres_test

import (
	"errors"
	"testing"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/postgres"
)

// Callers need not know which backend it is.
func TestNobodyThere(t *testing.T) {
	_, err := postgres.Open(t.Context(), "postgres://ana:secret@127.0.0.1:1/none?sslmode=disable", postgres.Options{})
	if !errors.Is(err, memory.ErrUnavailable) || !errors.Is(err, postgres.ErrUnavailable) || errors.Is(err, memory.ErrUnauthorized) {
		t.Errorf("Open: %v, want ErrUnavailable", err)
	}
}
