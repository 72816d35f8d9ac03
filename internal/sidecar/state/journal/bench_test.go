package journal_test

import (
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/state/journal"
)

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{64, 512, 4096} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			j := open(b, b.TempDir(), journal.Options{MaxRecords: 200_000})
			rec := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if err := j.Append(rec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("parallel/bytes=512", func(b *testing.B) {
		j := open(b, b.TempDir(), journal.Options{MaxRecords: 200_000})
		rec := make([]byte, 512)
		b.SetBytes(int64(len(rec)))
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := j.Append(rec); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// Opening reads all that is there once, replaying reads it again.
func BenchmarkOpenAndReplay(b *testing.B) {
	dir := b.TempDir()
	j := open(b, dir, journal.Options{MaxRecords: 200_000})
	for range 100_000 {
		if err := j.Append(make([]byte, 512)); err != nil {
			b.Fatal(err)
		}
	}
	closeIt(b, j)
	b.SetBytes(100_000 * (512 + 20))
	for b.Loop() {
		j := open(b, dir, journal.Options{MaxRecords: 200_000})
		n, err := j.Replay(func([]byte) error { return nil })
		if err != nil || n != 100_000 {
			b.Fatal(n, err)
		}
		closeIt(b, j)
	}
}
