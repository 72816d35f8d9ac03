package storetest_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
)

// outcome is a test that only notes what was said to it.
type outcome struct {
	testing.TB
	said string
}

func (*outcome) Helper() {}

func (o *outcome) Skipf(string, ...any) { o.said = "skipped" }

func (o *outcome) Fatalf(string, ...any) { o.said = "failed" }

func TestMissingStore(t *testing.T) {
	for _, test := range []struct{ addr, require, want string }{
		{"", "", "skipped"}, {"", "0", "skipped"}, {"", "1", "failed"}, {"127.0.0.1:1", "1", ""}, {"127.0.0.1:1", "", ""},
	} {
		t.Setenv("RAGPILOT_REQUIRE_STORES", test.require)
		for variable, find := range map[string]func(testing.TB) string{
			"QDRANT_ADDR": storetest.Qdrant, "ELASTICSEARCH_URL": storetest.Elasticsearch,
			"POSTGRES_DSN": storetest.Postgres, "REDIS_ADDR": storetest.Redis,
		} {
			t.Setenv(variable, test.addr)
			o := &outcome{TB: t}
			if got := find(o); got != test.addr || o.said != test.want {
				t.Errorf("%+v, %s: address %q, %q", test, variable, got, o.said)
			}
		}
	}
}
