package queue_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
)

// Loading a job, in requests a second: go test -bench Load -benchtime 1000000x loads a million.
func BenchmarkLoad(b *testing.B) {
	for name, dsn := range map[string]func(b *testing.B) string{
		"sqlite":   func(b *testing.B) string { return filepath.Join(b.TempDir(), "jobs.db") },
		"postgres": func(b *testing.B) string { return storetest.PostgresSchema(b) },
	} {
		b.Run(name, func(b *testing.B) {
			q := open(b, dsn(b))
			b.ResetTimer()
			_, err := q.Create(b.Context(), queue.NewJob{Name: fmt.Sprint("load-", b.N)}, func(yield func(queue.Request, error) bool) {
				for i := range b.N {
					row := int(uint64(i) * 2654435761 % uint64(b.N)) // rows are in another order than requests
					r := queue.Request{Seq: i, Subtree: i / 100, Rows: []int{row}, Text: "a review of a product, in a few words"}
					if !yield(r, nil) {
						return
					}
				}
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
