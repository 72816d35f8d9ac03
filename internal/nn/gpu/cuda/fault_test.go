//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/gpu/cuda/emulator"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// emulated skips a test that needs faults.
func emulated(t *testing.T) {
	t.Helper()
	if !emulator.Present() {
		t.Skip("not run: faults come from the emulated driver")
	}
}

var faults int

// fault makes a call fail. The emulated driver counts calls anew when the text is another.
func fault(t *testing.T, text string) {
	faults++
	if text != "" {
		text += fmt.Sprintf(";none:%d:0", faults)
	}
	t.Setenv("RP_EMU_FAULT", text)
}

// failure demands an error of the device that wraps reason and names what it should.
func failure(t *testing.T, err, reason error, names ...string) {
	t.Helper()
	var e *gpu.Error
	if !errors.As(err, &e) || (reason != nil && !errors.Is(err, reason)) {
		t.Fatalf("error %v, want one of the device that wraps %v", err, reason)
	}
	for _, name := range append(names, "cuda:0") {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not name %q", err, name)
		}
	}
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func TestLaunchFails(t *testing.T) {
	emulated(t)
	d := card(t, 0, gpu.Options{})
	s := must[gpu.Stream](t)(d.NewStream(1))
	x, w := must[gpu.Buffer](t)(d.Alloc("x", 8)), must[gpu.Buffer](t)(d.Alloc("blk.3.attn_norm.weight", 8))
	got := make([]float32, 8)
	s.Write(x, []float32{1, 2, 3, 4, 5, 6, 7, 8})
	s.Write(w, make([]float32, 8))
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	fault(t, "launch:norm:1:701")
	s.Norm(x, x, w, 0)
	s.Add(x, x) // does nothing
	s.Read(got, x)
	failure(t, s.Sync(), nil, "norm", "blk.3.attn_norm.weight", "701")
	if !slices.Equal(got, make([]float32, 8)) {
		t.Errorf("behind a failure %v was read", got)
	}
	s.Read(got, x)
	if err := s.Sync(); err != nil || got[7] != 8 {
		t.Errorf("after a failure: %v, %v", got, err)
	}
	fault(t, "copy:1:1")
	s.Write(w, got)
	failure(t, s.Sync(), nil, "write", "blk.3.attn_norm.weight")
	s.Close()
	s.Close() // does nothing
	d.Free(x)
}

func TestLost(t *testing.T) {
	emulated(t)
	d := card(t, 0, gpu.Options{})
	s, other := must[gpu.Stream](t)(d.NewStream(1)), must[gpu.Stream](t)(d.NewStream(1))
	x, u := must[gpu.Buffer](t)(d.Alloc("x", 8)), must[gpu.Buffer](t)(d.Alloc("blk.2.ffn_gate", 8))
	pool := d.NewPool(compute.Heads{Query: 1, KV: 1, Dim: 8}, 2)
	page := must[gpu.Page](t)(pool.New())
	s.Write(x, make([]float32, 8))
	fault(t, "async:gate:1:700")
	s.Add(x, x)
	s.Gate(u, x)
	failure(t, s.Sync(), gpu.ErrLost, "gate", "blk.2.ffn_gate", "last kernels: add, gate")
	fault(t, "")
	other.Add(x, x)
	failure(t, other.Sync(), gpu.ErrLost)
	_, err := d.Alloc("more", 8)
	failure(t, err, gpu.ErrLost, "more")
	_, err = d.NewStream(1)
	failure(t, err, gpu.ErrLost)
	failure(t, errors.Join(pool.Write(page, make([]float32, pool.Floats())), pool.Copy(page, page)), gpu.ErrLost)
	failure(t, pool.Read(make([]float32, pool.Floats()), page), gpu.ErrLost)
	_, err = s.Largest([]float32{1, 2}, 2, 1)
	failure(t, err, gpu.ErrLost)
	d.Free(x)
	pool.Free(page)
	s.Close()
}

// TestCopyTriedAgain: a page that was written has what was written, though the copy to the card failed at first.
func TestCopyTriedAgain(t *testing.T) {
	emulated(t)
	d := card(t, 0, gpu.Options{})
	pool := d.NewPool(compute.Heads{Query: 1, KV: 1, Dim: 8}, 3)
	var pages [2]gpu.Page
	want, got := make([]float32, pool.Floats()), make([]float32, pool.Floats())
	for i := range want {
		want[i] = float32(i)
	}
	for i := range pages {
		pages[i] = must[gpu.Page](t)(pool.New())
		if err := pool.Write(pages[i], want); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= 3; n++ {
		fault(t, fmt.Sprintf("launch:kv_copy:%d:701", n))
		failure(t, pool.Read(got, pages[0]), nil, "kv_copy", "701")
	}
	fault(t, "")
	for i, page := range pages {
		if err := pool.Read(got, page); err != nil || !slices.Equal(got, want) {
			t.Errorf("page %d: %v, or it has something else", i, err)
		}
	}
}

func TestLostWhileCopying(t *testing.T) {
	emulated(t)
	d := card(t, 0, gpu.Options{})
	s := must[gpu.Stream](t)(d.NewStream(1))
	pool := d.NewPool(compute.Heads{Query: 1, KV: 1, Dim: 8}, 2)
	page := must[gpu.Page](t)(pool.New())
	fault(t, "async:kv_copy:1:719")
	if err := pool.Write(page, make([]float32, pool.Floats())); err != nil {
		t.Fatal(err)
	}
	norms := make([]float64, 1)
	s.ValueNorms(norms, pool, 0, []gpu.Page{page}, 1)
	failure(t, s.Sync(), gpu.ErrLost)
}

// TestMemory: errors name what there is no room for, and nothing counts that was not allocated.
func TestMemory(t *testing.T) {
	d := card(t, 0, gpu.Options{Budget: 9 << 20})
	s := must[gpu.Stream](t)(d.NewStream(1))
	x := must[gpu.Buffer](t)(d.Alloc("x", 8))
	used := d.Memory().Used
	_, err := d.Alloc("attention's output", 3<<20)
	failure(t, err, gpu.ErrMemory, "attention's output", "budget")
	_, err = d.Matrix("token_embd.weight", quant.F32, 1<<10, 3<<10, make([]byte, 12<<20))
	failure(t, err, gpu.ErrMemory, "token_embd.weight")
	pool := d.NewPool(compute.Heads{Query: 1, KV: 1, Dim: 64}, 8)
	pages := 0
	for ; err == nil || pages == 0; pages++ {
		_, err = pool.New()
		if pages > 200 {
			t.Fatal("pages have no bound")
		}
	}
	failure(t, err, gpu.ErrMemory, "keys and values")
	if now := d.Memory().Used; now > 9<<20 || now <= used {
		t.Errorf("%d bytes are used", now)
	}
	if pages < 60 {
		t.Errorf("%d pages have room", pages)
	}
	s.Write(x, []float32{1, 2, 3, 4, 5, 6, 7, 8})
	if err := s.Sync(); err != nil {
		t.Error(err)
	}
	d.Free(x)
	if !emulator.Present() {
		return
	}
	used = d.Memory().Used
	for _, what := range []string{"a matrix", "a buffer"} {
		fault(t, "alloc:1:2")
		if what == "a matrix" {
			_, err = d.Matrix(what, quant.F32, 1, 8, make([]byte, 32))
		} else {
			_, err = d.Alloc(what, 8)
		}
		failure(t, err, gpu.ErrMemory, what)
		fault(t, "")
	}
	if now := d.Memory().Used; now != used {
		t.Errorf("%d bytes are used, and %d were before", now, used)
	}
}

// scenario does something of everything, and returns the first error.
func scenario(d gpu.Device) error {
	h := compute.Heads{Query: 2, KV: 1, Dim: 16}
	w, err := d.Matrix("w", quant.F32, 32, 32, make([]byte, 4*32*32))
	if err != nil {
		return err
	}
	s, err := d.NewStream(1)
	if err != nil {
		return err
	}
	x, err := d.Alloc("x", 32)
	if err != nil {
		return err
	}
	y, err := d.Alloc("y", 32)
	if err != nil {
		return err
	}
	pool := d.NewPool(h, 3)
	pages := make([]gpu.Page, 20)
	for i := range pages {
		if pages[i], err = pool.New(); err != nil {
			return err
		}
		if err := pool.Write(pages[i], make([]float32, pool.Floats())); err != nil {
			return err
		}
	}
	probe := compute.NewProbe(h, 5)
	probe.Within, probe.Rows = true, compute.ValueNorm
	s.Write(x, make([]float32, 32))
	s.MatMul(y, x, 1, &w)
	s.Keep(y, 8, []int32{1, 2})
	b := s.Batch(0, pool, []gpu.Run{{Rows: 1, Position: 300, Pages: pages, Probes: []*compute.Probe{nil, probe, nil}}})
	s.Store(b, 1, x.First(16), x.First(16))
	s.Attend(b, 1, y, x)
	norms := make([]float64, 20)
	s.ValueNorms(norms, pool, 1, pages, 20)
	if _, err := s.Largest(make([]float32, 5), 5, 2); err != nil {
		return err
	}
	if err := s.Sync(); err != nil {
		return err
	}
	if err := pool.Copy(pages[0], pages[1]); err != nil {
		return err
	}
	return pool.Read(make([]float32, pool.Floats()), pages[0])
}

// TestEachCallFails lets each allocation, copy and launch fail, one after the other: the error is the device's, and all is given back.
func TestEachCallFails(t *testing.T) {
	emulated(t)
	for _, kind := range []string{"alloc:%d:2", "hostalloc:%d:2", "copy:%d:1", "launch:*:%d:701"} {
		n := 1
		for ; n < 200; n++ {
			fault(t, fmt.Sprintf(kind, n))
			d, err := Open(0, gpu.Options{})
			if err == nil {
				err = scenario(d)
				fault(t, "")
				if e := d.Close(); e != nil {
					t.Errorf("%s, %d: close: %v", kind, n, e)
				}
			}
			if live := emulator.Count(0); live != (emulator.Live{}) {
				t.Fatalf("%s, %d: left after %v: %+v", kind, n, err, live)
			}
			if err == nil {
				break
			}
			reason := gpu.ErrMemory
			if !strings.Contains(kind, "alloc") {
				reason = nil
			}
			failure(t, err, reason)
		}
		if n < 3 || n == 200 {
			t.Errorf("%s: %d calls", kind, n)
		}
	}
}

// TestClosed: a closed device says so, and closing it again does nothing.
func TestClosed(t *testing.T) {
	d := card(t, 0, gpu.Options{})
	s := must[gpu.Stream](t)(d.NewStream(1))
	x := must[gpu.Buffer](t)(d.Alloc("x", 8))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	s.Add(x, x)
	failure(t, s.Sync(), errClosed)
	if _, err := d.Alloc("y", 8); !errors.Is(err, errClosed) {
		t.Errorf("%v", err)
	}
	s.Close()
	d.Free(x)
	if m := d.Memory(); m.Used != 0 {
		t.Errorf("%+v", m)
	}
}

func TestTwoCards(t *testing.T) {
	emulated(t)
	t.Setenv("RP_EMU_DEVICES", "2")
	a, b := card(t, 0, gpu.Options{}), card(t, 1, gpu.Options{})
	if _, err := Open(2, gpu.Options{}); !errors.Is(err, gpu.ErrNoDevice) {
		t.Errorf("a third card: %v", err)
	}
	s := []gpu.Stream{must[gpu.Stream](t)(a.NewStream(1)), must[gpu.Stream](t)(b.NewStream(1))}
	x := []gpu.Buffer{must[gpu.Buffer](t)(a.Alloc("x", 4)), must[gpu.Buffer](t)(b.Alloc("x", 4))}
	got := [2][]float32{make([]float32, 4), make([]float32, 4)}
	for i := range s {
		s[i].Write(x[i], []float32{1, 2, 3, float32(i)})
		s[i].Add(x[i], x[i])
		s[i].Read(got[i], x[i])
	}
	for i := range s {
		if err := s[i].Sync(); err != nil || !slices.Equal(got[i], []float32{2, 4, 6, 2 * float32(i)}) {
			t.Errorf("card %d: %v, %v", i, got[i], err)
		}
	}
	fault(t, "async:add:1:719")
	s[0].Add(x[0], x[0])
	failure(t, s[0].Sync(), gpu.ErrLost)
	s[1].Add(x[1], x[1])
	if err := s[1].Sync(); err != nil {
		t.Errorf("the other card: %v", err)
	}
}

func TestOpen(t *testing.T) {
	if err := usable(0); err != nil {
		t.Skipf("not run: %v", err)
	}
	d, fallback, err := gpu.Open("auto", gpu.Options{})
	if err != nil || d.Name() != "cuda:0" || fallback != "" || !gpu.Built() {
		t.Fatalf("auto: %v, %q, %v", d, fallback, err)
	}
	if !strings.HasPrefix(d.Kernel(), "cuda-") || d.Memory().Total == 0 || d.Memory().Free == 0 {
		t.Errorf("%s, %+v", d.Kernel(), d.Memory())
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	found := gpu.Diagnose()
	if found.Problem != "" || found.Driver == "" || len(found.Cards) == 0 || found.Cards[0].Problem != "" || found.Cards[0].Model == "" ||
		found.Cards[0].Capability == "" || found.Cards[0].Memory.Free == 0 {
		t.Errorf("found %+v", found)
	}
	if !emulator.Present() {
		return
	}
	fault(t, "load:1:218")
	_, err = Open(0, gpu.Options{})
	failure(t, err, nil, "218", "compile the kernels")
	fault(t, "")
	t.Setenv("RP_EMU_DRIVER", "11080")
	if _, err = Open(0, gpu.Options{}); !errors.Is(err, gpu.ErrNoDevice) || !strings.Contains(err.Error(), "11.8") {
		t.Errorf("an old driver: %v", err)
	}
	if live := emulator.Count(0); live != (emulator.Live{}) {
		t.Errorf("left: %+v", live)
	}
}

// TestNoCard: a program for cards runs where there is none, and says so.
func TestNoCard(t *testing.T) {
	if os.Getenv("RP_TEST_NO_CARD") != "" {
		_, fallback, err := gpu.Open("auto", gpu.Options{})
		_, _, missing := gpu.Open("cuda:0", gpu.Options{})
		fmt.Printf("%q, %v, %t, %q\n", fallback, err, errors.Is(missing, gpu.ErrNoDevice), gpu.Diagnose().Problem)
		return
	}
	emulated(t)
	for _, code := range []string{"100", "803", "999"} {
		program := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestNoCard$")
		program.Env = append(os.Environ(), "RP_TEST_NO_CARD=1", "RP_EMU_FAULT=init:1:"+code)
		out, err := program.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "<nil>, true") || strings.Count(string(out), "no device: CUDA error "+code) != 2 ||
			!strings.Contains(string(out), "driver for CUDA 12.1") {
			t.Errorf("%s: %v: %s", code, err, out)
		}
	}
}

// TestChunks: attention is the same bits whether one block computes all chunks of a row or each has its own.
func TestChunks(t *testing.T) {
	d := card(t, 0, gpu.Options{})
	s := must[gpu.Stream](t)(d.NewStream(1))
	defer func(n int) { enoughBlocks = n }(enoughBlocks)
	for _, dim := range []int{24, 80, 136} {
		h := compute.Heads{Query: 6, KV: 2, Dim: dim}
		pool := d.NewPool(h, 1)
		pages := make([]gpu.Page, 50)
		for i := range pages {
			pages[i] = must[gpu.Page](t)(pool.New())
			floats := make([]float32, pool.Floats())
			for j := range floats {
				floats[j] = float32(math.Sin(float64((i + 1) * j)))
			}
			if err := pool.Write(pages[i], floats); err != nil {
				t.Fatal(err)
			}
		}
		n := 7 * h.Query * h.Dim
		q, out := must[gpu.Buffer](t)(d.Alloc("q", n)), must[gpu.Buffer](t)(d.Alloc("out", n))
		floats := make([]float32, n)
		for i := range floats {
			floats[i] = 3 * float32(math.Cos(float64(i)))
		}
		s.Write(q, floats)
		results, sums := [2][]float32{make([]float32, n), make([]float32, n)}, [2]*compute.Probe{}
		for i := range results {
			enoughBlocks = 1000 * i
			sums[i] = compute.NewProbe(h, 500)
			sums[i].Within = true
			b := s.Batch(0, pool, []gpu.Run{
				{Rows: 3, Position: 254, Pages: pages, Probes: []*compute.Probe{sums[i]}},
				{Rows: 4, Position: 795, Pages: pages, Probes: []*compute.Probe{sums[i]}},
			})
			s.Attend(b, 0, out, q)
			s.Read(results[i], out)
			if err := s.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(results[0], results[1]) || !slices.Equal(sums[0].Sums, sums[1].Sums) || results[0][0] == 0 || sums[0].Sums[0] == 0 {
			t.Errorf("%d dimensions: blocks of chunks have other results", dim)
		}
	}
}

// TestLayers: operations on a layer do not wait until pages are written in later ones.
func TestLayers(t *testing.T) {
	emulated(t)
	late := os.Getenv("RP_EMU_ORDER") != "eager" // copies run when they are waited for
	d := card(t, 0, gpu.Options{})
	s := must[gpu.Stream](t)(d.NewStream(1))
	for _, layers := range []int{2, 16, 40} {
		pool := d.NewPool(compute.Heads{Query: 1, KV: 1, Dim: 8}, layers)
		pages := []gpu.Page{must[gpu.Page](t)(pool.New()), must[gpu.Page](t)(pool.New())}
		floats := make([]float32, pool.Floats())
		for i := range floats {
			floats[i] = 1
		}
		for _, page := range pages {
			if err := pool.Write(page, floats); err != nil {
				t.Fatal(err)
			}
		}
		if layers == 40 && late {
			fault(t, "async:kv_copy:2:719") // the second group of layers
		}
		norms := make([]float64, 20)
		s.ValueNorms(norms, pool, 0, pages, 20)
		if err := s.Sync(); err != nil || norms[19] != math.Sqrt(8) {
			t.Fatalf("the first of %d layers: %v, %v", layers, norms, err)
		}
		s.ValueNorms(norms, pool, layers-1, pages, 20)
		err := s.Sync()
		if layers == 40 && late {
			failure(t, err, gpu.ErrLost)
		} else if err != nil || norms[19] != math.Sqrt(8) {
			t.Errorf("the last of %d layers: %v, %v", layers, norms, err)
		}
	}
}
