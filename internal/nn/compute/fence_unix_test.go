//go:build unix

package compute

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
	"github.com/ragpilot/ragpilot/internal/nn/quant/quanttest"
)

// fence is memory between two pages of memory that nothing may touch: a read or a write outside faults.
type fence struct {
	t      *testing.T
	random *rand.Rand
	maps   [][]byte
}

func newFence(t *testing.T, random *rand.Rand) *fence {
	f := &fence{t: t, random: random}
	t.Cleanup(f.free)
	return f
}

func (f *fence) free() {
	for _, m := range f.maps {
		if err := syscall.Munmap(m); err != nil {
			f.t.Error(err)
		}
	}
	f.maps = nil
}

// bytes returns n bytes that end, or begin, where memory does.
func (f *fence) bytes(n int) []byte {
	f.t.Helper()
	page := os.Getpagesize()
	size := (n + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		f.t.Fatal(err)
	}
	f.maps = append(f.maps, m)
	for _, outside := range [][]byte{m[:page], m[page+size:]} {
		if err := syscall.Mprotect(outside, syscall.PROT_NONE); err != nil {
			f.t.Fatal(err)
		}
	}
	at := page + size - n
	if f.random.IntN(4) == 0 {
		at = page
	}
	return m[at : at+n : at+n]
}

// copied returns a copy of s that ends, or begins, where memory does.
func (f *fence) copied(s []float32) []float32 {
	f.t.Helper()
	c := f.floats(len(s))
	copy(c, s)
	return c
}

// packed returns n weights, each block with another scale: mostly of a usual size, seldom any finite number, also one near zero.
func (f *fence) packed(format quant.Type, n int) []byte {
	f.t.Helper()
	random := quanttest.Random(format, n, .25, f.random.Uint64())
	data := f.bytes(len(random))
	copy(data, random)
	_, size := format.Block()
	anything := f.random.IntN(4) == 0
	for block := range slices.Chunk(data, size) {
		for _, at := range halvesOf[format] {
			number := quant.ToF16(f.random.Float32() - .5)
			if anything {
				for number = 0x7c00; number&0x7c00 == 0x7c00; { // infinite, or not a number
					number = uint16(f.random.Uint32())
				}
			}
			binary.LittleEndian.PutUint16(block[at:], number)
		}
	}
	return data
}

func (f *fence) floats(n int) []float32 {
	f.t.Helper()
	b := f.bytes(4 * n)
	c := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), n)
	for i := range c {
		c[i] = float32(math.NaN())
	}
	return c
}

// spoilPools leaves numbers that are not any in what calls find of earlier ones.
func spoilPools() {
	nan := func(n int) []float32 {
		s := make([]float32, n)
		for i := range s {
			s[i] = float32(math.NaN())
		}
		return s
	}
	w, b := workspaces.Get().(*workspace), benches.Get().(*bench)
	w.queries, w.weights, b.panel = nan(blockQueries*128), nan(blockQueries*64*PageTokens), nan(panelRows*768)
	workspaces.Put(w)
	benches.Put(b)
}

// iterations is how often f is called; RAGPILOT_STRESS is for how long.
func iterations(t *testing.T, n int, f func(random *rand.Rand, i int)) {
	t.Helper()
	long, _ := time.ParseDuration(os.Getenv("RAGPILOT_STRESS"))
	end := time.Now().Add(long)
	seed := uint64(1)
	if long > 0 {
		seed = uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
	}
	for i := 0; i < n || time.Now().Before(end); i++ {
		f(rand.New(rand.NewPCG(seed, uint64(i))), i)
		if t.Failed() {
			t.Fatalf("seed %d, iteration %d", seed, i)
		}
	}
	if long > 0 {
		t.Logf("done")
	}
}
