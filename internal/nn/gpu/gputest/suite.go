// Package gputest has the tests that each [gpu.Device] passes. They compare with sums in float64, with package compute, or with what must
// be the same bits. Shapes are small, because devices may be emulated.
package gputest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// Run tests a device. open returns it, and gives it back when the test ends.
func Run(t *testing.T, open func(t *testing.T) gpu.Device) {
	d := open(t)
	for _, test := range []struct {
		name string
		run  func(*suite)
	}{
		{"buffers", (*suite).buffers},
		{"panics", (*suite).panics},
		{"rows", (*suite).rows},
		{"products", (*suite).products},
		{"vectors", (*suite).vectors},
		{"rotate", (*suite).rotate},
		{"argmax", (*suite).argmax},
		{"largest", (*suite).largest},
		{"pages", (*suite).pages},
		{"page order", (*suite).pageOrder},
		{"store", (*suite).store},
		{"attention", (*suite).attention},
		{"attention alone", (*suite).attentionAlone},
		{"probes", (*suite).probes},
		{"needle", (*suite).needle},
		{"permutation", (*suite).permutation},
		{"move", (*suite).move},
		{"gather", (*suite).gather},
		{"turn", (*suite).turn},
		{"value norms", (*suite).valueNorms},
		{"forward pass", (*suite).forwardPass},
		{"goroutines", (*suite).goroutines},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &suite{T: t, d: d, random: rand.New(rand.NewPCG(1, 2))}
			s.s = s.stream()
			test.run(s)
			if err := s.s.Sync(); err != nil {
				t.Error(err)
			}
		})
	}
}

// suite is one test.
type suite struct {
	*testing.T
	d      gpu.Device
	s      gpu.Stream
	random *rand.Rand
}

func (s *suite) stream() gpu.Stream {
	s.Helper()
	stream, err := s.d.NewStream(2)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(stream.Close)
	return stream
}

// sync waits for the stream.
func (s *suite) sync() {
	s.Helper()
	if err := s.s.Sync(); err != nil {
		s.Fatal(err)
	}
}

func (s *suite) alloc(n int) gpu.Buffer {
	s.Helper()
	b, err := s.d.Alloc("test", n)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { s.d.Free(b) })
	return b
}

// up returns a buffer with these floats.
func (s *suite) up(floats []float32) gpu.Buffer {
	s.Helper()
	b := s.alloc(len(floats))
	s.s.Write(b, floats)
	return b
}

// down returns a buffer's floats.
func (s *suite) down(b gpu.Buffer) []float32 {
	s.Helper()
	floats := make([]float32, b.N)
	s.s.Read(floats, b)
	s.sync()
	return floats
}

func (s *suite) normal(n int) []float32 {
	floats := make([]float32, n)
	for i := range floats {
		floats[i] = float32(s.random.NormFloat64())
	}
	return floats
}

// same demands the same bits.
func (s *suite) same(what string, got, want []float32) {
	s.Helper()
	if len(got) != len(want) {
		s.Fatalf("%s: %d floats, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			s.Fatalf("%s: float %d of %d is %g, want %g", what, i, len(got), got[i], want[i])
		}
	}
}

// near demands that got differs from want by at most bound, times what it is measured by, or times the number itself if scale is nil.
func (s *suite) near(what string, got []float32, want, scale []float64, bound float64) {
	s.Helper()
	if len(got) != len(want) {
		s.Fatalf("%s: %d floats, want %d", what, len(got), len(want))
	}
	for i, x := range got {
		by := math.Abs(want[i])
		if scale != nil {
			by = scale[i]
		}
		if !(math.Abs(float64(x)-want[i]) <= bound*by) {
			s.Fatalf("%s: float %d of %d is %g, want %g ± %g", what, i, len(got), x, want[i], bound*by)
		}
	}
}

// cache is a sequence's pages, and what is in them.
type cache struct {
	heads  compute.Heads
	layers int
	pool   gpu.Pool
	pages  []gpu.Page
	floats [][]float32 // of the pages, as they are in the program's memory
}

// fill returns n new pages of a pool with random contents, in no order.
func (s *suite) fill(pool gpu.Pool, h compute.Heads, layers, n int) *cache {
	s.Helper()
	c := &cache{heads: h, layers: layers, pool: pool, pages: s.take(pool, n), floats: make([][]float32, n)}
	for i := range c.pages {
		c.floats[i] = s.normal(pool.Floats())
		if err := pool.Write(c.pages[i], c.floats[i]); err != nil {
			s.Fatal(err)
		}
	}
	return c
}

// take returns n pages of a pool in no order.
func (s *suite) take(pool gpu.Pool, n int) []gpu.Page {
	s.Helper()
	pages := make([]gpu.Page, n)
	for _, i := range s.random.Perm(n) {
		page, err := pool.New()
		if err != nil {
			s.Fatal(err)
		}
		s.Cleanup(func() { pool.Free(page) })
		pages[i] = page
	}
	return pages
}

// check demands that the pages have the bits of floats.
func (s *suite) check(what string, c *cache) {
	s.Helper()
	got := make([]float32, c.pool.Floats())
	for i, page := range c.pages {
		if err := c.pool.Read(got, page); err != nil {
			s.Fatal(err)
		}
		s.same(fmt.Sprintf("%s: page %d", what, i), got, c.floats[i])
	}
}

// layer is that of the token's page in the program's memory.
func (c *cache) layer(layer, token int) compute.Page {
	return gpu.Layer(c.heads, c.floats[token/compute.PageTokens], layer)
}

// key and value are those of a head of a token.
func (c *cache) key(layer, head, token int) []float32 {
	row := make([]float32, c.heads.Dim)
	c.layer(layer, token).Get(c.heads, head, token%compute.PageTokens, row, false)
	return row
}

func (c *cache) value(layer, head, token int) []float32 {
	return c.layer(layer, token).HeadValues(c.heads, head, token%compute.PageTokens)
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
