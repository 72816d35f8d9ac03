package compute

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// Matrix is a matrix of weights as it lies in a file: row after row, packed. It is only read.
type Matrix struct {
	Type       quant.Type
	Rows, Cols int
	Data       []byte
}

// NewMatrix checks that data holds rows × cols weights and that products with them can be computed. The error names what is wrong.
func NewMatrix(t quant.Type, rows, cols int, data []byte) (Matrix, error) {
	if rows <= 0 || cols <= 0 || cols%lanes != 0 {
		return Matrix{}, fmt.Errorf("matrix of %d × %d: want at least one row, and columns a multiple of %d", rows, cols, lanes)
	}
	row, err := t.Bytes(cols)
	if err != nil {
		return Matrix{}, fmt.Errorf("matrix of %d × %d: %w", rows, cols, err)
	}
	if len(data)/row != rows || len(data)%row != 0 {
		return Matrix{}, fmt.Errorf("matrix of %d × %d in %v: %d bytes, want %d rows of %d", rows, cols, t, len(data), rows, row)
	}
	return Matrix{Type: t, Rows: rows, Cols: cols, Data: data}, nil
}

// Columns is what the number of a matrix's columns must be a multiple of.
const Columns = lanes

// Floats is the matrix of rows × cols float32, which are not copied. It panics where [NewMatrix] has an error.
func Floats(rows, cols int, w []float32) Matrix {
	m, err := NewMatrix(quant.F32, rows, cols, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 4*len(w)))
	if err != nil {
		panic("compute: " + err.Error())
	}
	return m
}

// row returns the bytes of a row.
func (w *Matrix) row(i int) []byte {
	size := len(w.Data) / w.Rows
	return w.Data[i*size : (i+1)*size : (i+1)*size]
}

// Row writes row i, unpacked, to dst, which has Cols elements.
func (w *Matrix) Row(dst []float32, i int) { quant.Dequantize(w.Type, dst[:w.Cols], w.row(i)) }

// inputRows is about how many rows of the input meet a panel at a time: few enough to stay in a near cache while all groups of the
// panel pass.
const inputRows = 32

// bench is where one thread works on a product.
type bench struct {
	panel []float32
	rows  [groupRows][]byte
	x, y  [groupRows]float32
	wide  wideSums
	sums  gemvSums
}

var benches = sync.Pool{New: func() any { return new(bench) }}

// MatMul computes out = a·wᵀ for rows rows: a has rows × w.Cols elements, out rows × w.Rows. It is spread over the crew's threads.
func (c *Crew) MatMul(out, a []float32, rows int, w *Matrix) {
	if len(a) != rows*w.Cols || len(out) != rows*w.Rows {
		panic(fmt.Sprintf("compute: %d × %d weights, %d rows: input of %d, output of %d floats", w.Rows, w.Cols, rows, len(a), len(out)))
	}
	panels := (w.Rows + panelRows - 1) / panelRows
	c.Each(panels, rows*w.Rows*w.Cols, func(from, to int) {
		b := benches.Get().(*bench)
		b.panel = Grow(b.panel, panelRows*w.Cols)
		for p := from; p < to; p++ {
			b.product(out, a, rows, w, p*panelRows)
		}
		clear(b.rows[:])
		benches.Put(b)
	})
}

// aheadBytes is how far ahead memory is fetched at least while a group is computed, so that it has arrived when it is needed.
const aheadBytes = 4 << 10

// packed computes a panel for one row of the input without unpacking the weights. It reports false, and does nothing, where that is not
// faster.
func (b *bench) packed(out, a []float32, w *Matrix, first int) bool {
	count := active.gemvGroups * groupRows
	if active.gemv == nil || w.Rows < count {
		return false
	}
	row := len(w.Data) / w.Rows                   // in bytes
	ahead := count * (1 + aheadBytes/(count*row)) // rows
	last := w.Rows - count                        // if fewer than count rows are left, the last count rows are taken: some are computed twice
	for at := first; at < min(first+panelRows, w.Rows); at += count {
		from, next := min(at, last), min(at+ahead, last)
		if !active.gemv(w.Type, w.Cols, a, w.Data[from*row:][:count*row], w.Data[next*row:][:count*row], &b.sums) {
			return false
		}
		copy(out[at:], b.sums[at-from:count])
	}
	return true
}

// product computes the columns of out that belong to the panel that begins at row first of the weights.
func (b *bench) product(out, a []float32, rows int, w *Matrix, first int) {
	size, groups := groupRows*w.Cols, 0
	if rows == 1 && b.packed(out, a, w, first) {
		return
	}
	for at := first; at < min(first+panelRows, w.Rows); at += groupRows {
		for i := range b.rows {
			b.rows[i] = w.row(min(at+i, w.Rows-1)) // past the end, the last one once more
		}
		active.unpack(w.Type, b.panel[groups*size:][:size], &b.rows)
		groups++
	}
	step := inputRows
	if active.wide != nil { // a multiple
		step = (inputRows + active.wideRows - 1) / active.wideRows * active.wideRows
	}
	for block := 0; block < rows; block += step {
		end, g := min(block+step, rows), 0
		if wideGroups := active.wideGroups; active.wide != nil {
			for ; first+(g+wideGroups)*groupRows <= w.Rows && g+wideGroups <= groups; g += wideGroups {
				at := b.wideTiles(out, a, block, end, w, b.panel[g*size:][:wideGroups*size], first+g*groupRows)
				for i := g; i < g+wideGroups; i++ {
					b.tiles(out, a, at, end, w, b.panel[i*size:][:size], first+i*groupRows)
				}
			}
		}
		for ; g < groups; g++ {
			b.tiles(out, a, block, end, w, b.panel[g*size:][:size], first+g*groupRows)
		}
	}
}

// tiles computes the products of rows from to end with a group, whose first row is row at of the weights.
func (b *bench) tiles(out, a []float32, from, end int, w *Matrix, group []float32, at int) {
	k, count := w.Cols, min(groupRows, w.Rows-at)
	i := from
	for ; i+2 <= end; i += 2 {
		active.tile(k, a[i*k:][:k], a[(i+1)*k:][:k], group, &b.x, &b.y)
		copy(out[i*w.Rows+at:][:count], b.x[:])
		copy(out[(i+1)*w.Rows+at:][:count], b.y[:])
	}
	if i < end {
		active.tile(k, a[i*k:][:k], nil, group, &b.x, nil)
		copy(out[i*w.Rows+at:][:count], b.x[:])
	}
}

// wideTiles does it with active.wideGroups whole groups for as many rows as can be taken active.wideRows at a time, and returns the row
// behind them.
func (b *bench) wideTiles(out, a []float32, from, end int, w *Matrix, groups []float32, at int) int {
	k, rows := w.Cols, active.wideRows
	for ; from+rows <= end; from += rows {
		active.wide(k, a[from*k:][:rows*k], groups, &b.wide)
		for j := range rows {
			copy(out[(from+j)*w.Rows+at:], b.wide[j][:active.wideGroups*groupRows])
		}
	}
	return from
}
