package order_test

import (
	"context"
	"testing"

	"github.com/ragpilot/ragpilot/batch/internal/order"
)

func BenchmarkNew(b *testing.B) {
	s := synthetic(5)
	for _, mode := range modes {
		b.Run(string(mode), func(b *testing.B) {
			b.ReportAllocs()
			var t order.Totals
			for b.Loop() {
				p, err := order.New(context.Background(), s, order.Options{Columns: mode, Effort: 5_000_000})
				if err != nil {
					b.Fatal(err)
				}
				t = p.Totals
				if err := p.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(t.Saved)/float64(t.Bytes), "saved/byte")
		})
	}
}
