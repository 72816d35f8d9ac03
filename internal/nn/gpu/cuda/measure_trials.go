//go:build cuda

package cuda

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorgonia.org/cu"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// Goals, as parts of what is possible.
const (
	copyGoal         = .85
	arithmeticGoal   = .5
	interferenceGoal = .95
)

// tokens is how many have room in all pages, tokenBytes are one's keys and values.
func (m *measuring) tokens() int     { return len(m.all) * compute.PageTokens }
func (m *measuring) tokenBytes() int { return 4 * m.pool.floats / compute.PageTokens }

// layerBytes are a token's keys and values of a layer.
func (m *measuring) layerBytes() int { return m.tokenBytes() / m.layers }

// copies measures kv_copy. Its results are right if pages that went to the card and back are what they were.
func (m *measuring) copies() error {
	const parts = 4
	n, size := len(m.pages[0])/parts, m.set/parts
	launches := func(out bool) [][]operation {
		all := make([][]operation, parts)
		for i := range all {
			all[i] = []operation{m.pool.copyOf(m.host.address+uint64(i*size), m.table+uint64(8*n*i), n, 0, m.layers, out)}
		}
		return all
	}
	in, out := launches(false), launches(true)
	right, sum, err := m.roundTrip(in, out)
	if err != nil {
		return err
	}
	t := trial{Measurement: gpu.Measurement{
		Operation: "kv_copy to the card", Bytes: int64(size),
		Shape: fmt.Sprintf("%d pages of %d layers of %d KiB, 2 blocks", n, m.layers, m.layerBytes()*compute.PageTokens>>10),
		Goal:  copyGoal, Right: right, Sum: sum,
	}, launches: in}
	t.bound = func(i int, on cu.Stream) error {
		return cu.MemcpyHtoDAsync(cu.DevicePtr(m.scratch.Addr+uint64(i%parts*size)), m.host.at(i%parts*size), int64(size), on)
	}
	s, err := m.d.NewStream(1)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := m.run(t, s.(*stream)); err != nil {
		return err
	}
	t.Operation, t.Goal, t.launches = "kv_copy from the card", 0, out
	t.Shape = strings.Replace(t.Shape, "2 blocks", "1 block", 1)
	t.bound = func(i int, on cu.Stream) error {
		return cu.MemcpyDtoHAsync(m.host.at(i%parts*size), cu.DevicePtr(m.scratch.Addr+uint64(i%parts*size)), int64(size), on)
	}
	return m.run(t, s.(*stream))
}

// roundTrip copies a set of random numbers to the card and back.
func (m *measuring) roundTrip(in, out [][]operation) (right bool, sum string, err error) {
	some := view(m.normal(min(m.set/4, 1<<20)))
	for at := 0; at < m.set; at += len(some) {
		copy(m.host.bytes[at:], some)
	}
	before := sha256.Sum256(m.host.bytes)
	for i, all := range [][][]operation{in, out} {
		err := m.d.do(func() error {
			for _, o := range all {
				if err := m.d.launch(o[0], m.d.in); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			err = waitStream(m.d.context, m.d.in)
		}
		if err != nil {
			return false, "", m.d.failure("kv_copy", "keys and values", err)
		}
		if i == 0 {
			clear(m.host.bytes)
		}
	}
	after := sha256.Sum256(m.host.bytes)
	return before == after, digits(after), nil
}

// moves measures what moves keys and values on the card.
func (m *measuring) moves() error {
	h, kept := m.heads, m.tokens()/4
	rope := compute.NewRope(h.Dim, 5e5, nil, true)
	chosen := make([][][]int, m.layers)
	for layer := range chosen {
		for range h.KV {
			list := m.random.Perm(m.tokens() / 2)[:kept]
			slices.Sort(list)
			chosen[layer] = append(chosen[layer], list)
		}
	}
	err := m.trial(trial{Measurement: gpu.Measurement{
		Operation: "gather", Shape: fmt.Sprintf("%d of %d tokens, %s", kept, m.tokens()/2, m.model()),
		Bytes: int64(2*kept*m.tokenBytes() + 4*kept*m.layers*h.KV), Goal: copyGoal,
	}, same: sameGather}, 2, nil, func(s *stream, i int) { s.Gather(m.pool, m.pages[i], m.pages[1-i], chosen) })
	if err != nil {
		return err
	}
	n, angles := m.tokens()/2-compute.PageTokens, rope.Angles(nil, 1000)
	err = m.trial(trial{Measurement: gpu.Measurement{
		Operation: "move", Shape: fmt.Sprintf("%d tokens to slot 5, %s", n, m.model()), Bytes: int64(2 * n * m.tokenBytes()), Goal: copyGoal,
	}, same: sameMove}, 2, nil, func(s *stream, i int) { s.Move(m.pool, m.pages[i], 5, m.pages[1-i], 0, n, angles, rope) })
	if err != nil {
		return err
	}
	steps, turned := make([]int32, m.layers*h.KV*compute.PageTokens), min(len(m.all), 48)
	for i := range steps {
		steps[i] = int32(1 + i%100)
	}
	err = m.trial(trial{Measurement: gpu.Measurement{
		Operation: "turn", Shape: "a page in place, " + m.model(), Bytes: int64(compute.PageTokens * m.tokenBytes()), Goal: copyGoal,
	}, same: sameTurn}, turned, nil, func(s *stream, i int) { s.Turn(m.pool, m.all[i*(len(m.all)/turned)], steps, rope) })
	if err != nil {
		return err
	}
	return m.trial(trial{Measurement: gpu.Measurement{
		Operation: "page_copy", Shape: "a page, " + m.model(), Bytes: int64(2 * compute.PageTokens * m.tokenBytes()), Goal: copyGoal,
	}, same: samePages}, len(m.pages[0]), nil, func(s *stream, i int) { s.push(m.pool.pageCopy(m.pages[1][i], m.pages[0][i])) })
}

func (m *measuring) model() string {
	return fmt.Sprintf("%d layers, %d heads of %d", m.layers, m.heads.KV, m.heads.Dim)
}

// attention measures that of many rows, and its parts that are for probes. Launches are of one layer each.
func (m *measuring) attention() error {
	h, rows, all := m.heads, min(m.many, m.tokens()/2), m.tokens()
	before := all - rows
	shape := fmt.Sprintf("%d rows at %d, %d × %d heads of %d, ", rows, before, h.Query, h.KV, h.Dim) + m.peakText
	pair := int64(2 * h.Query * h.Dim) // floating-point operations of a product of a row and a token
	seen := int64(rows*before + rows*(rows+1)/2)
	q, out := m.floats.First(rows*h.Query*h.Dim), m.out.First(rows*h.Query*h.Dim)
	for _, t := range []struct {
		trial
		keep func(o operation) bool
	}{
		{trial{
			Measurement: gpu.Measurement{Operation: "attend", Shape: shape, Flops: 2 * pair * seen, Goal: arithmeticGoal},
			same:        sameAttend, within: 1e-5,
		}, func(o operation) bool { return strings.HasPrefix(o.name, "attend_") && o.args[0] != 0 }},
		{trial{
			Measurement: gpu.Measurement{Operation: "attend, sums alone", Shape: shape, Flops: pair * int64(rows*before), Goal: arithmeticGoal},
			same:        sameWithin, within: 1e-5,
		}, func(o operation) bool { return strings.HasPrefix(o.name, "attend_") && o.args[0] == 0 }},
		{trial{
			Measurement: gpu.Measurement{Operation: "probe", Shape: shape, Flops: pair * int64(rows*before), Goal: arithmeticGoal},
			same:        sameProbe, within: 1e-5,
		}, func(o operation) bool { return o.name == "probe" }},
	} {
		probes := make([]*compute.Probe, m.layers)
		p := compute.NewProbe(h, before)
		p.Within = true
		for i := range probes {
			probes[i] = p
		}
		var batch gpu.Batch
		err := m.trial(t.trial, m.layers, t.keep, func(s *stream, i int) {
			if i == 0 {
				batch = s.Batch(0, m.pool, []gpu.Run{{Rows: rows, Position: before, Pages: m.all, Probes: probes}})
			}
			s.Attend(batch, i, out, q)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// decode measures attention of one row, and writing keys and values.
func (m *measuring) decode() error {
	h, n := m.heads, m.tokens()
	width := h.Query * h.Dim
	var batch gpu.Batch
	err := m.trial(trial{Measurement: gpu.Measurement{
		Operation: "attend", Shape: fmt.Sprintf("1 row at %d, %d × %d heads of %d", n-1, h.Query, h.KV, h.Dim), Bytes: int64(n * m.layerBytes()),
	}, same: sameAttend, within: 1e-5}, m.layers, nil, func(s *stream, i int) {
		if i == 0 {
			batch = s.Batch(0, m.pool, []gpu.Run{{Rows: 1, Position: n - 1, Pages: m.all}})
		}
		s.Attend(batch, i, m.out.First(width), m.floats.First(width))
	})
	if err != nil {
		return err
	}
	width = h.KV * h.Dim
	rows := min(n, m.floats.N/2/width)
	keys, values := m.floats.First(rows*width), m.floats.Slice(m.floats.N/2, m.floats.N/2+rows*width)
	err = m.trial(trial{Measurement: gpu.Measurement{
		Operation: "store", Shape: fmt.Sprintf("%d rows, %d heads of %d", rows, h.KV, h.Dim), Bytes: int64(2 * rows * m.layerBytes()),
	}, same: sameStore}, m.layers, nil, func(s *stream, i int) {
		if i == 0 {
			batch = s.Batch(0, m.pool, []gpu.Run{{Rows: rows, Pages: m.all}})
		}
		s.Store(batch, i, keys, values)
	})
	if err != nil {
		return err
	}
	norms := make([]float64, n*h.KV)
	return m.trial(trial{Measurement: gpu.Measurement{
		Operation: "value_norms", Shape: fmt.Sprintf("%d tokens, %d heads of %d", n, h.KV, h.Dim), Bytes: int64(n*m.layerBytes()/2 + 8*n*h.KV),
	}, same: sameNorms}, min(m.layers, 8), func(o operation) bool { return o.name == "value_norms" }, func(s *stream, i int) {
		s.ValueNorms(norms, m.pool, i, m.all, n)
	})
}

// products measures those with packed weights.
func (m *measuring) products() error {
	for _, t := range []quant.Type{quant.Q4_K, quant.F16} {
		size, err := t.Bytes(m.outs * m.cols)
		if err != nil {
			return err
		}
		data := packed(m.random, size)
		weights := make([]gpu.Matrix, max(2, blocks(m.set, size)))
		for i := range weights {
			if weights[i], err = m.d.Matrix("weights", t, m.outs, m.cols, data); err != nil {
				return err
			}
		}
		for _, rows := range []int{1, 8, m.many} {
			x := gpu.Measurement{Operation: fmt.Sprintf("matmul %v", t), Shape: fmt.Sprintf("%d rows × %d × %d", rows, m.cols, m.outs)}
			if rows > 8 {
				x.Flops = 2 * int64(rows) * int64(m.outs) * int64(m.cols)
				x.Shape += ", " + m.peakText
			} else {
				x.Bytes = int64(size)
			}
			a, out := m.floats.First(rows*m.cols), m.out.First(rows*m.outs)
			err := m.trial(trial{Measurement: x, same: sameProduct(t, min(rows, 70)), within: 1e-5}, len(weights), nil,
				func(s *stream, i int) { s.MatMul(out, a, rows, &weights[i]) })
			if err != nil {
				return err
			}
		}
		if t == quant.F16 {
			err = m.interference(weights)
		}
		for _, w := range weights {
			m.d.release(w.Addr)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// interference measures what a copy to the card costs products that run at the same time. They are right if they are the same bits.
func (m *measuring) interference(weights []gpu.Matrix) error {
	const loop = 4
	x := gpu.Measurement{
		Operation: "interference", Shape: fmt.Sprintf("%d matmul F16 of %d rows alone, and beside kv_copy to the card", loop, m.many),
		Goal: interferenceGoal, Flops: 2 * loop * int64(m.many) * int64(m.outs) * int64(m.cols),
	}
	m.progress(x.Operation + ", " + x.Shape)
	s, launches, err := m.record(loop, nil, func(s *stream, i int) {
		s.MatMul(m.out.First(m.many*m.outs), m.floats.First(m.many*m.cols), m.many, &weights[i%len(weights)])
	})
	if err != nil {
		return err
	}
	defer s.Close()
	n := len(m.pages[0])
	copying := m.pool.copyOf(m.host.address, m.table, n, 0, m.layers, false)
	var alone, with []time.Duration
	var results [2][]byte
	copies := 1
	for i := range m.warm + m.times {
		a, err := m.loop(s, launches)
		if err == nil && i == 0 {
			results[0], err = m.product(s)
		}
		var w time.Duration
		if err == nil {
			copies, w, err = m.beside(s, copying, copies, launches)
		}
		if err == nil && i == 0 {
			results[1], err = m.product(s)
		}
		if err != nil {
			return m.d.failure(x.Operation, x.Shape, err)
		}
		if i >= m.warm {
			alone, with = append(alone, a), append(with, w)
		}
	}
	x.Right, x.Sum = bytes.Equal(results[0], results[1]), digits(sha256.Sum256(results[1]))
	x.Median, x.Min, x.Bound = median(with), slices.Min(with), median(alone)
	m.rows = append(m.rows, x)
	return nil
}

func (m *measuring) loop(s *stream, launches [][]operation) (time.Duration, error) {
	return m.once(s.cu, func() error {
		for _, l := range launches {
			if err := m.d.launch(l[0], s.cu); err != nil {
				return err
			}
		}
		return nil
	})
}

// product returns the bits of a loop's last product, and spoils them on the card.
func (m *measuring) product(s *stream) ([]byte, error) {
	floats := make([]float32, m.many*m.outs)
	s.Read(floats, m.out)
	s.launch("fill", m.out.What, flat(len(floats)), threads, m.out.Addr, uint64(len(floats)), float(-1))
	return view(floats), s.Sync()
}

// beside runs the loop while the card copies, and again with twice as many copies until they outlast it. It returns how many that were.
func (m *measuring) beside(s *stream, copying operation, copies int, launches [][]operation) (int, time.Duration, error) {
	for {
		err := m.d.do(func() error {
			if err := m.events[2].Record(m.d.in); err != nil {
				return err
			}
			for range copies {
				if err := m.d.launch(copying, m.d.in); err != nil {
					return err
				}
			}
			return m.events[3].Record(m.d.in)
		})
		if err != nil {
			return 0, 0, err
		}
		took, err := m.loop(s, launches)
		if err != nil {
			return 0, 0, err
		}
		if err := waitStream(m.d.context, m.d.in); err != nil {
			return 0, 0, err
		}
		copied, err := m.between(2, 3)
		if err != nil {
			return 0, 0, err
		}
		ended, err := m.between(2, 1)
		if err != nil {
			return 0, 0, err
		}
		if copied >= ended || copies >= 64 {
			return copies, took, nil
		}
		copies *= 2
	}
}

// vectors measures operations on rows of floats. Each launch has a quarter of the numbers.
func (m *measuring) vectors() error {
	const parts = 4
	size := m.floats.N / parts
	rows := size / 2 / m.cols
	n := rows * m.cols
	at := func(i, half int) gpu.Buffer { return m.floats.Slice(i*size+half*n, i*size+(half+1)*n) }
	weights := m.out.First(m.cols)
	for _, t := range []struct {
		trial
		op func(s *stream, i int)
	}{
		{
			trial{Measurement: gpu.Measurement{Operation: "norm", Bytes: int64(4 * (2*n + m.cols))}, same: sameNorm, within: 1e-6},
			func(s *stream, i int) { s.Norm(at(i, 1), at(i, 0), weights, 1e-5) },
		},
		{
			trial{Measurement: gpu.Measurement{Operation: "add", Bytes: int64(12 * n)}, same: sameAdd},
			func(s *stream, i int) { s.Add(at(i, 0), at(i, 1)) },
		},
		{
			trial{Measurement: gpu.Measurement{Operation: "gate", Bytes: int64(12 * n)}, same: sameGate, within: 1e-6},
			func(s *stream, i int) { s.Gate(at(i, 0), at(i, 1)) },
		},
	} {
		t.Shape = fmt.Sprintf("%d rows of %d", rows, m.cols)
		if err := m.trial(t.trial, parts, nil, t.op); err != nil {
			return err
		}
	}
	width := m.heads.Query * m.heads.Dim
	rows = size / width
	rope := compute.NewRope(m.heads.Dim, 5e5, nil, true)
	var floats []float32
	for i := range rows {
		floats = rope.Angles(floats, i)
	}
	angles := m.out.First(len(floats))
	if err := m.d.upload(angles.Addr, view(floats)); err != nil {
		return m.d.failure("write", "angles", err)
	}
	return m.trial(trial{Measurement: gpu.Measurement{
		Operation: "rotate", Shape: fmt.Sprintf("%d rows of %d heads of %d", rows, m.heads.Query, m.heads.Dim),
		Bytes: int64(8*rows*width + 4*len(floats)),
	}, same: sameRotate}, parts, nil, func(s *stream, i int) { s.Rotate(m.floats.Slice(i*size, i*size+rows*width), angles, rope) })
}

// choices measures what finds the largest numbers.
func (m *measuring) choices() error {
	const parts = 4
	if err := m.fill(); err != nil { // the vectors have changed them
		return err
	}
	size := m.floats.N / parts
	width := min(m.width, size)
	rows, k := size/width, width/4
	err := m.trial(trial{Measurement: gpu.Measurement{
		Operation: "top_k", Shape: fmt.Sprintf("%d of %d, %d rows, read 5 times", k, width, rows), Bytes: int64(5 * 4 * rows * width),
	}, same: sameLargest}, parts, nil, func(s *stream, i int) { s.topK(m.out.Addr, m.floats.Addr+uint64(4*i*size), rows, width, k) })
	if err != nil {
		return err
	}
	width = min(m.vocabulary, size)
	rows = size / width
	places := make([]int32, rows)
	return m.trial(trial{Measurement: gpu.Measurement{
		Operation: "argmax", Shape: fmt.Sprintf("%d rows of %d", rows, width), Bytes: int64(4 * rows * width),
	}, same: sameArgmax}, parts, nil, func(s *stream, i int) { s.Argmax(places, m.floats.Slice(i*size, i*size+rows*width), width) })
}

// digits are the first of a hash.
func digits(sum [sha256.Size]byte) string { return fmt.Sprintf("%x", sum)[:12] }
