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
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if builtIn != "" {
			_ = os.RemoveAll(builtIn)
		}
		http.DefaultClient.CloseIdleConnections()
		os.Exit(code)
	}))
}
