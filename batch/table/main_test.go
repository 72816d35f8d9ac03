package table

import (
	"testing"

	"go.uber.org/goleak"
)

// pgx closes a connection in which a query was cut off by a goroutine of its own, which waits for the server for some seconds.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn.(*PgConn).asyncClose.func1"))
}
