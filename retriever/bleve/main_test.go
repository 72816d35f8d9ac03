package bleve_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that a closed index leaves no goroutine behind. bleve itself keeps a fixed pool of analysis
// workers for the whole process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker"))
}
