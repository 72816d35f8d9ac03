package index

import (
	"math"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

const (
	// chunkRows is how many vectors lie together: more are never copied when one is added.
	chunkRows = 4096
	// blockColumns is what the length of a row is rounded up to: the format packs so many numbers with one factor.
	blockColumns = 32
)

// vectors are the rows of a matrix in 8 bits a number, brought to length 1 before. A row of zeros stands for a vector that is
// missing, and has the cosine 0 with all.
type vectors struct {
	columns int // of a row; 0: there was no vector yet
	rows    int
	chunks  [][]byte
	scratch []float32 // of append; zeros in between
}

// add appends a row. A vector of another length than the first counts as missing: the caller compares lengths.
func (v *vectors) add(vector []float32) {
	v.rows++
	if v.columns == 0 && len(vector) > 0 {
		v.columns = (len(vector) + blockColumns - 1) / blockColumns * blockColumns
		v.scratch = make([]float32, v.columns)
		for range v.rows - 1 {
			v.append(nil)
		}
	}
	if v.columns > 0 {
		v.append(vector)
	}
}

func (v *vectors) append(vector []float32) {
	size := v.rowBytes()
	last := len(v.chunks) - 1
	if last < 0 || len(v.chunks[last]) == chunkRows*size {
		v.chunks = append(v.chunks, nil)
		last++
	}
	if len(vector) <= len(v.scratch) {
		copy(v.scratch, vector)
		normalize(v.scratch)
	}
	chunk := v.chunks[last]
	at := len(chunk)
	if cap(chunk)-at < size {
		room := chunkRows * size
		if last == 0 { // most scopes are smaller than a chunk
			room = min(max(2*cap(chunk), 16*size), room)
		}
		grown := make([]byte, at, room)
		copy(grown, chunk)
		chunk = grown
	}
	chunk = chunk[:at+size]
	if err := quant.Quantize(quant.Q8_0, chunk[at:], v.scratch); err != nil {
		panic("index: " + err.Error()) // the lengths are this type's own
	}
	v.chunks[last] = chunk
	clear(v.scratch)
}

// erase makes a row one of zeros.
func (v *vectors) erase(i int) {
	if v.columns > 0 {
		size := v.rowBytes()
		clear(v.chunks[i/chunkRows][i%chunkRows*size:][:size])
	}
}

func (v *vectors) rowBytes() int {
	size, err := quant.Q8_0.Bytes(v.columns)
	if err != nil {
		panic("index: " + err.Error()) // columns is a multiple of the block
	}
	return size
}

// cosines returns the cosine of each row with a vector, nil if there are none to compare.
func (v *vectors) cosines(crew *compute.Crew, asked []float32) []float32 {
	if v.columns == 0 || len(asked) == 0 || len(asked) > v.columns {
		return nil
	}
	row := make([]float32, v.columns)
	copy(row, asked)
	normalize(row)
	out := make([]float32, v.rows)
	at := 0
	for i := range v.chunks {
		m := v.matrix(i)
		crew.MatMul(out[at:at+m.Rows], row, 1, &m)
		at += m.Rows
	}
	return out
}

func (v *vectors) matrix(chunk int) compute.Matrix {
	data := v.chunks[chunk]
	m, err := compute.NewMatrix(quant.Q8_0, len(data)/v.rowBytes(), v.columns, data)
	if err != nil {
		panic("index: " + err.Error())
	}
	return m
}

// row returns a vector of length 1, or of zeros.
func (v *vectors) row(i int) []float32 {
	out := make([]float32, v.columns)
	if v.columns > 0 {
		m := v.matrix(i / chunkRows)
		m.Row(out, i%chunkRows)
	}
	return out
}

func (v *vectors) bytes() int64 {
	var n int64
	for _, c := range v.chunks {
		n += int64(cap(c))
	}
	return n
}

// normalize brings v to length 1; zeros, and what has no length, become zeros.
func normalize(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 || math.IsInf(sum, 0) || math.IsNaN(sum) {
		clear(v)
		return
	}
	scale := 1 / math.Sqrt(sum)
	for i := range v {
		v[i] = float32(float64(v[i]) * scale)
	}
}
