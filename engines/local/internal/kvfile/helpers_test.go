package kvfile_test

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/engines/local/internal/kvfile"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("KVFILE_WRITER"); dir != "" {
		writeForever(dir)
	}
	goleak.VerifyTestMain(m)
}

var shape = kvfile.Shape{Layers: 2, KV: 1, Dim: 8}

const floats = 2 * 2 * 8 * 16

func config(dir string) kvfile.Config {
	return kvfile.Config{Dir: dir, Bytes: 1 << 20, Model: "tiny", Hash: [32]byte{1}, Kernel: "avx2", Shape: shape}
}

func open(t testing.TB, c kvfile.Config) *kvfile.Folder {
	t.Helper()
	f, err := kvfile.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func id(n int) kvfile.ID { return kvfile.ID{Page: [32]byte{byte(n), byte(n >> 8)}} }

// page is a page's numbers, by its number.
func page(n int) []float32 {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	p := make([]float32, floats)
	for i := range p {
		p[i] = float32(r.NormFloat64())
	}
	return p
}

func write(t testing.TB, f *kvfile.Folder, n int) {
	t.Helper()
	if err := f.Write(id(n), page(n)); err != nil {
		t.Fatal(err)
	}
}

func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// files returns the paths of all pages' files.
func files(t testing.TB, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*", "*.kv"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}
