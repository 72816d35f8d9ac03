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
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/local/internal/kvfile"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// Whatever happens to a file, its page is not there, and no wrong number is read.
func TestDamage(t *testing.T) {
	testkit.NotUnderRace(t)
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
