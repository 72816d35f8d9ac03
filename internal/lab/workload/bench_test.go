package workload_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/workload"
)

// BenchmarkRequests draws 10,000 requests.
func BenchmarkRequests(b *testing.B) {
	g, err := workload.New(workload.Options{Contexts: 10_000, Pool: 3333, Topics: 200, Zipf: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for range g.Requests() {
		}
	}
}

// BenchmarkBlocks makes the texts of 1,000 blocks.
func BenchmarkBlocks(b *testing.B) {
	g, err := workload.New(workload.Options{Contexts: 1, Pool: 1000})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for range g.Blocks() {
		}
	}
}
