package batch_test

import (
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// builtIn is the folder of the program that tests of processes have compiled, which is removed here; empty: no test needed it.
var builtIn string

func TestMain(m *testing.M) {
	// pgx closes a connection in which a query was cut off by a goroutine of its own, which waits for the server for some seconds.
	closing := goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn.(*PgConn).asyncClose.func1")
	goleak.VerifyTestMain(m, closing, goleak.Cleanup(func(code int) {
		if builtIn != "" {
			_ = os.RemoveAll(builtIn)
		}
		http.DefaultClient.CloseIdleConnections()
		os.Exit(code)
	}))
}
