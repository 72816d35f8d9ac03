package blob_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/memory/internal/blob"
)

func TestRoundTrip(t *testing.T) {
	var shared []float32
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOf(rapid.Float32()).Draw(t, "vector")
		got, err := blob.Decode(shared, blob.Encode(v))
		shared = got
		if err != nil || !slices.Equal(got, v) {
			t.Fatalf("%v, %v; want %v", got, err, v)
		}
	})
	if _, err := blob.Decode(nil, []byte{1, 2, 3}); err == nil {
		t.Error("three bytes are a vector")
	}
}
