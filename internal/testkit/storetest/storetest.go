// Package storetest finds for tests the real stores that .ci/stores.sh starts. A test that needs one which is
// not there skips and says what it needs, or fails if RAGPILOT_REQUIRE_STORES is 1. [Start] is for tests that stop or kill a
// server of their own.
package storetest

import (
	"os"
	"testing"
)

// Qdrant returns QDRANT_ADDR, the host:port of a server's gRPC services.
func Qdrant(t testing.TB) string { t.Helper(); return need(t, "QDRANT_ADDR") }

// Elasticsearch returns ELASTICSEARCH_URL, such as http://127.0.0.1:9200.
func Elasticsearch(t testing.TB) string { t.Helper(); return need(t, "ELASTICSEARCH_URL") }

// Postgres returns POSTGRES_DSN, such as postgres://user@127.0.0.1:5432/postgres.
func Postgres(t testing.TB) string { t.Helper(); return need(t, "POSTGRES_DSN") }

// Redis returns REDIS_ADDR, the host:port of a Redis or Valkey server.
func Redis(t testing.TB) string { t.Helper(); return need(t, "REDIS_ADDR") }

func need(t testing.TB, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	switch {
	case value != "":
		return value
	case os.Getenv("RAGPILOT_REQUIRE_STORES") == "1":
		t.Fatalf("%s is not set, and RAGPILOT_REQUIRE_STORES is 1", variable)
	default:
		t.Skipf("needs a real store at %s: make stores", variable)
	}
	return ""
}
