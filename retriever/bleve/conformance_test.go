package bleve_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/retriever/bleve"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
)

func TestConformance(t *testing.T) {
	for name, dir := range map[string]func(t testing.TB) string{
		"memory": func(testing.TB) string { return "" },
		"folder": func(t testing.TB) string { return t.TempDir() },
	} {
		t.Run(name, func(t *testing.T) {
			retrievertest.Run(t, retrievertest.Subject{
				New: func(t testing.TB) retrievertest.Store {
					s, err := bleve.OpenStore(bleve.StoreOptions{IndexDir: dir(t)})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = s.Close() })
					return s
				},
				Leaks: []goleak.Option{goleak.IgnoreAnyFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker")},
			})
		})
	}
}
