package kvfile_test

import (
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/engines/local/internal/kvfile"
)

// What was written is there after a restart, bit for bit.
func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	c := config(dir)
	odd := page(1)
	copy(odd, []float32{float32(math.Inf(1)), math.Float32frombits(0x7fc12345), float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32})
	f := open(t, c)
	if err := f.Write(id(1), odd); err != nil {
		t.Fatal(err)
	}
	write(t, f, 2)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = open(t, c)
	for n, want := range map[int][]float32{1: odd, 2: page(2)} {
		got := make([]float32, floats)
		if !f.Has(id(n)) {
			t.Fatalf("page %d is not there", n)
		}
		if err := f.Read(id(n), got); err != nil || !same(got, want) {
			t.Errorf("page %d: %v, or other numbers", n, err)
		}
	}
	if s := f.Stats(); s.Pages != 2 || s.Read != 2 || s.Bytes != 2*(4*floats+112) {
		t.Errorf("%+v", s)
	}
	for _, name := range files(t, dir) {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// Another model, kernel, format or shape finds nothing, and takes part in the quota.
func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	f := open(t, config(dir))
	write(t, f, 1)
	f.Close()
	for name, change := range map[string]func(*kvfile.Config){
		"model":  func(c *kvfile.Config) { c.Hash[31] = 1 },
		"kernel": func(c *kvfile.Config) { c.Kernel = "portable" },
		"format": func(c *kvfile.Config) { c.Format = kvfile.F16 },
		"shape":  func(c *kvfile.Config) { c.Shape = kvfile.Shape{Layers: 1, KV: 2, Dim: 8} },
	} {
		c := config(dir)
		change(&c)
		f := open(t, c)
		if s := f.Stats(); f.Has(id(1)) || s.Pages != 0 || s.Bytes == 0 {
			t.Errorf("%s: %+v", name, s)
		}
		if err := f.Read(id(1), make([]float32, floats)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
		f.Close()
	}
	// A file under another model's name is damaged.
	from := files(t, dir)[0]
	c := config(dir)
	c.Hash[0] = 2
	f = open(t, c)
	write(t, f, 1)
	f.Close()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files(t, dir) {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f = open(t, c)
	if err := f.Read(id(1), make([]float32, floats)); !errors.Is(err, kvfile.ErrDamaged) || f.Has(id(1)) {
		t.Errorf("a page of another model: %v", err)
	}
}

// The quota holds at every moment, what was used last stays, and what the folder says is what is there.
func TestQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "kvfile")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		size := int64(4*floats + 112)
		c := config(dir)
		room := rapid.IntRange(1, 4).Draw(t, "room")
		c.Bytes = int64(room)*size + rapid.Int64Range(0, size-1).Draw(t, "rest")
		f, err := kvfile.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { f.Close() }()
		var want []int // the one used longest ago first
		use := func(n int) { want = append(slices.DeleteFunc(want, func(x int) bool { return x == n }), n) }
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				n := rapid.IntRange(0, 8).Draw(t, "page")
				if err := f.Write(id(n), page(n)); err != nil {
					t.Fatal(err)
				}
				use(n)
				want = want[max(0, len(want)-room):]
			},
			"read": func(t *rapid.T) {
				n := rapid.IntRange(0, 8).Draw(t, "page")
				got := make([]float32, floats)
				switch err := f.Read(id(n), got); {
				case !slices.Contains(want, n) && !errors.Is(err, fs.ErrNotExist), slices.Contains(want, n) && (err != nil || !same(got, page(n))):
					t.Fatalf("page %d of %v: %v", n, want, err)
				case err == nil:
					use(n)
				}
			},
			"": func(t *rapid.T) {
				entries, err := filepath.Glob(filepath.Join(dir, "*", "*-*"))
				if err != nil || len(entries) != len(want) {
					t.Fatalf("%d files, want %v, %v", len(entries), want, err)
				}
				for n := range 9 {
					if f.Has(id(n)) != slices.Contains(want, n) {
						t.Fatalf("page %d is there: %v, want %v", n, f.Has(id(n)), want)
					}
				}
				if s := f.Stats(); s.Pages != len(want) || s.Bytes != int64(len(want))*size || s.Bytes > c.Bytes {
					t.Fatalf("%+v, want %v", s, want)
				}
			},
		})
	})
}

// The order of use outlasts a restart, over the models.
func TestQuotaOverModels(t *testing.T) {
	dir := t.TempDir()
	other := config(dir)
	other.Hash[0] = 9
	f := open(t, other)
	write(t, f, 1)
	f.Close()
	old := time.Now().Add(-time.Hour)
	for _, name := range files(t, dir) {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	c := config(dir)
	c.Bytes = 2 * (4*floats + 112)
	f = open(t, c)
	write(t, f, 1)
	write(t, f, 2)
	if s := f.Stats(); s.Pages != 2 || s.Evicted != 1 || len(files(t, dir)) != 2 {
		t.Errorf("%+v, %v", s, files(t, dir))
	}
	f.Close()
	c.Bytes /= 2
	if f = open(t, c); f.Stats().Pages != 1 || len(files(t, dir)) != 1 {
		t.Errorf("a smaller quota: %+v", f.Stats())
	}
}

func TestForget(t *testing.T) {
	dir := t.TempDir()
	other := config(dir)
	other.Kernel = "portable"
	for _, c := range []kvfile.Config{config(dir), other} {
		f := open(t, c)
		for _, salt := range []byte{0, 1, 2} {
			if err := f.Write(kvfile.ID{Salt: [32]byte{salt}, Page: [32]byte{salt, 7}}, page(1)); err != nil {
				t.Fatal(err)
			}
		}
		f.Close()
	}
	f := open(t, config(dir))
	if err := f.Forget([32]byte{1}); err != nil {
		t.Fatal(err)
	}
	if s := f.Stats(); s.Pages != 2 || len(files(t, dir)) != 4 || f.Has(kvfile.ID{Salt: [32]byte{1}, Page: [32]byte{1, 7}}) {
		t.Errorf("%+v, %v", s, files(t, dir))
	}
	if err := open(t, config(dir)).Forget([32]byte{1}); !errors.Is(err, kvfile.ErrReadOnly) {
		t.Errorf("a reader: %v", err)
	}
}

// One process writes, others read.
func TestReader(t *testing.T) {
	dir := t.TempDir()
	writer := open(t, config(dir))
	write(t, writer, 1)
	reader := open(t, config(dir))
	if !writer.Writable() || reader.Writable() {
		t.Fatal("two writers, or none")
	}
	if err := reader.Read(id(1), make([]float32, floats)); err != nil || reader.Stats().Pages != 1 {
		t.Error(err)
	}
	if err := reader.Write(id(2), page(2)); !errors.Is(err, kvfile.ErrReadOnly) {
		t.Error(err)
	}
	if err := writer.Forget([32]byte{}); err != nil {
		t.Fatal(err)
	}
	if err := reader.Read(id(1), make([]float32, floats)); !errors.Is(err, fs.ErrNotExist) || reader.Has(id(1)) {
		t.Errorf("a page that the writer deleted: %v", err)
	}
}

func TestInspectAndRemove(t *testing.T) {
	dir := t.TempDir()
	f := open(t, config(dir))
	write(t, f, 1)
	write(t, f, 2)
	model := filepath.Dir(files(t, dir)[0])
	mine := filepath.Join(dir, "notes.txt")
	if err := errors.Join(os.Truncate(files(t, dir)[0], 50), os.WriteFile(filepath.Join(model, "temp-1"), nil, 0o600),
		os.WriteFile(mine, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	all, err := kvfile.Inspect(dir)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if c := all[0]; c.Model != "tiny" || c.Kernel != "avx2" || c.Format != "f32" || c.Pages != 2 || c.Damaged != 1 || c.Temp != 1 ||
		c.Bytes != 4*floats+112+50 {
		t.Errorf("%+v", c)
	}
	if err := kvfile.Remove(dir, all[0].Folder); err == nil {
		t.Error("a folder was removed under its writer")
	}
	f.Close()
	for _, name := range []string{"..", "0123456789abcdef"} {
		if err := kvfile.Remove(dir, name); err == nil {
			t.Errorf("%s was removed", name)
		}
	}
	if err := kvfile.Remove(dir, all[0].Folder); err != nil {
		t.Error(err)
	}
	if err := kvfile.Remove(dir, ""); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "notes.txt" {
		t.Errorf("left is %v, %v", left, err)
	}
	if _, err := kvfile.Inspect(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Small formats round once: what is read is near what was written, and the same each time.
func TestFormats(t *testing.T) {
	for format, c := range map[kvfile.Format]struct {
		far   float64 // of the largest number of a page
		bytes float64 // of those of f32, with 64 dimensions
	}{kvfile.F32: {0, 1}, kvfile.F16: {1.0 / 2048, 0.5}, kvfile.Int8: {1.0 / 250, 0.28}} {
		t.Run(format.String(), func(t *testing.T) {
			k := config(t.TempDir())
			k.Format, k.Shape = format, kvfile.Shape{Layers: 1, KV: 3, Dim: 64}
			f := open(t, k)
			want := make([]float32, 2*3*64*16)
			largest := 0.0
			for i := range want {
				want[i] = float32(rand.NormFloat64())
				largest = max(largest, math.Abs(float64(want[i])))
			}
			clear(want[:16]) // a group of zeros
			if err := f.Write(id(1), want); err != nil {
				t.Fatal(err)
			}
			got, again := make([]float32, len(want)), make([]float32, len(want))
			if err := errors.Join(f.Read(id(1), got), f.Read(id(1), again)); err != nil || !same(got, again) {
				t.Fatal(err)
			}
			for i := range want {
				if d := math.Abs(float64(got[i] - want[i])); d > c.far*largest {
					t.Fatalf("number %d: %g, was %g", i, got[i], want[i])
				}
			}
			if share := float64(f.Stats().Bytes-112) / float64(4*len(want)); share > c.bytes {
				t.Errorf("%.4f of the bytes of f32", share)
			}
		})
	}
}

// Many goroutines write, read and forget.
func TestConcurrent(t *testing.T) {
	c := config(t.TempDir())
	c.Bytes = 5 * (4*floats + 112)
	f := open(t, c)
	var all sync.WaitGroup
	for g := range 6 {
		all.Go(func() {
			got := make([]float32, floats)
			for i := range 60 {
				n := (i*5 + g) % 9
				if err := f.Write(id(n), page(n)); err != nil && !strings.Contains(err.Error(), "no room") {
					t.Error(err)
				}
				if err := f.Read(id(n), got); err == nil && !same(got, page(n)) {
					t.Error("wrong numbers")
				} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
				if g == 0 && i%20 == 0 {
					if err := f.Forget([32]byte{}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if s := f.Stats(); s.Bytes > c.Bytes || s.Bytes != int64(s.Pages)*(4*floats+112) || s.Pages != len(files(t, c.Dir)) {
		t.Errorf("%+v, %d files", s, len(files(t, c.Dir)))
	}
}

// BenchmarkPage writes and reads a page of SmolLM2-135M.
func BenchmarkPage(b *testing.B) {
	for _, format := range []kvfile.Format{kvfile.F32, kvfile.F16, kvfile.Int8} {
		c := config(b.TempDir())
		c.Shape, c.Format, c.Bytes = kvfile.Shape{Layers: 30, KV: 3, Dim: 64}, format, 64<<20
		f := open(b, c)
		p := make([]float32, 30*2*3*64*16)
		for i := range p {
			p[i] = float32(i%1000) / 500
		}
		b.Run("write/"+format.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(4 * len(p)))
			n := 0
			for b.Loop() {
				n++
				if err := f.Write(id(n), p); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := f.Write(id(1), p); err != nil {
			b.Fatal(err)
		}
		b.Run("read/"+format.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(4 * len(p)))
			for b.Loop() {
				if err := f.Read(id(1), p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
