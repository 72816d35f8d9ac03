package kvfile_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

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

// Whatever happens to a file, its page is not there, and no wrong number is read.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	f := open(t, config(dir))
	write(t, f, 1)
	name := files(t, dir)[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	try := func(what string, data []byte) {
		t.Helper()
		f.Close()
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if f, err = kvfile.Open(config(dir)); err != nil {
			t.Fatal(err)
		}
		err := f.Read(id(1), make([]float32, floats))
		_, gone := os.Stat(name)
		if s := f.Stats(); !errors.Is(err, kvfile.ErrDamaged) || f.Has(id(1)) || s.Damaged != 1 || s.Bytes != 0 ||
			!errors.Is(gone, fs.ErrNotExist) {
			t.Fatalf("%s: %v, %+v, %v", what, err, s, gone)
		}
		damaged++
	}
	step := 1
	if testing.Short() {
		step = 37
	}
	for n := 0; n < len(whole); n += step {
		flipped := bytes.Clone(whole)
		flipped[n] ^= 1 << (n % 8)
		try(fmt.Sprint("bit of byte ", n), flipped)
		try(fmt.Sprint("cut at ", n), whole[:n])
	}
	try("longer", append(bytes.Clone(whole), 0))
	write(t, f, 1)
	if err := f.Read(id(1), make([]float32, floats)); err != nil {
		t.Errorf("written once more: %v", err)
	}
	f.Close()
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

// What goes wrong while it runs is an error, and leaves no half file and no wrong count.
func TestAccidents(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kv")
	f := open(t, config(dir))
	write(t, f, 1)
	model := filepath.Dir(files(t, dir)[0])
	if err := os.RemoveAll(model); err != nil {
		t.Fatal(err)
	}
	if err := f.Read(id(1), make([]float32, floats)); !errors.Is(err, fs.ErrNotExist) || f.Has(id(1)) {
		t.Errorf("a removed page: %v", err)
	}
	write(t, f, 2) // the model's folder is made again
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(id(3), page(3)); err == nil || f.Has(id(3)) {
		t.Errorf("a page in a removed folder: %v", err)
	}
	if s := f.Stats(); s.Errors != 1 || s.Bytes != 4*floats+112 {
		t.Errorf("%+v", s)
	}

	c := config(t.TempDir())
	c.Format = kvfile.F16
	f = open(t, c)
	for _, v := range []float32{70000, float32(math.Inf(-1)), float32(math.NaN())} {
		p := page(1)
		p[5] = v
		if err := f.Write(id(1), p); err == nil || f.Has(id(1)) {
			t.Errorf("%g as f16: %v", v, err)
		}
	}
	if s := f.Stats(); s.Bytes != 0 || s.Errors != 3 {
		t.Errorf("%+v", s)
	}
	c = config(t.TempDir())
	c.Bytes = 100
	if _, err := kvfile.Open(c); err == nil || !strings.Contains(err.Error(), "100 bytes") {
		t.Error(err)
	}
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := kvfile.Open(config(shared)); err == nil || !strings.Contains(err.Error(), "others may write") {
		t.Errorf("a folder that others may write to: %v", err)
	}
}

// Links do not lead out of the folder.
func TestLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	f := open(t, config(dir))
	write(t, f, 1)
	write(t, f, 2)
	f.Close()
	all := files(t, dir)
	moved := filepath.Join(outside, filepath.Base(all[0]))
	if err := errors.Join(os.Rename(all[0], moved), os.Symlink(moved, all[0])); err != nil {
		t.Skip(err)
	}
	f = open(t, config(dir))
	if s := f.Stats(); s.Pages != 1 {
		t.Errorf("a link is a page: %+v", s)
	}
	if err := errors.Join(os.Remove(all[1]), os.Symlink(moved, all[1])); err != nil {
		t.Fatal(err)
	}
	if err := f.Read(id(2), make([]float32, floats)); err == nil {
		t.Error("a page was read behind a link")
	}
	f.Close()
	if err := kvfile.Remove(dir, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(moved); err != nil {
		t.Error(err)
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

// roomy has room for all that TestKilled writes.
func roomy(dir string) kvfile.Config {
	c := config(dir)
	c.Bytes = 1 << 30
	return c
}

// writeForever writes pages and prints the number of each that was written.
func writeForever(dir string) {
	f, err := kvfile.Open(roomy(dir))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	first := f.Stats().Pages
	for n := first; ; n++ {
		if err := f.Write(id(n), page(n)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(n)
	}
}

// A process that is killed loses no page that it counted as written, and leaves no half one.
func TestKilled(t *testing.T) {
	times := 10
	if os.Getenv("RAGPILOT_FAULTS") == "1" {
		times = 100
	}
	dir := t.TempDir()
	written := map[string]bool{}
	for range times {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "KVFILE_WRITER="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Scan() // it has begun
		written[lines.Text()] = true
		time.AfterFunc(time.Duration(rand.IntN(20000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		for lines.Scan() {
			written[lines.Text()] = true
		}
		_ = cmd.Wait()
		f, err := kvfile.Open(roomy(dir))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, floats)
		for line := range maps.Keys(written) {
			var n int
			if _, err := fmt.Sscan(line, &n); err != nil {
				t.Fatalf("the writer says %q", line)
			}
			if err := f.Read(id(n), got); err != nil || !same(got, page(n)) {
				t.Errorf("page %d, which was written: %v", n, err)
			}
		}
		if s := f.Stats(); s.Damaged > 0 {
			t.Errorf("%+v", s)
		}
		f.Close()
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", "temp-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// FuzzRead: whatever stands in a page's file, it is the page that was written, or damaged.
func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	folder := open(f, config(dir))
	write(f, folder, 1)
	name := files(f, dir)[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		f.Fatal(err)
	}
	folder.Close()
	f.Add(whole)
	f.Add(whole[:200])
	f.Add([]byte("RPKVPG01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := kvfile.Inspect(dir); err != nil {
			t.Fatal(err)
		}
		folder, err := kvfile.Open(config(dir))
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		got := make([]float32, floats)
		if err := folder.Read(id(1), got); err == nil && !same(got, page(1)) {
			t.Error("other numbers were read")
		}
	})
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
