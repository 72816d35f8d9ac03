package compute

import "github.com/ragpilot/ragpilot/internal/nn/quant"

// A group of weights in the layout of tileVectors: for each 8 columns, those of its first row, its second, and so on.

// unpackVectors unpacks a group. Each weight has the bits that [quant.Dequantize] gives it, unless it is not a number.
func unpackVectors(t quant.Type, dst []float32, rows *[groupRows][]byte) {
	k := len(dst) / groupRows
	size, err := t.Bytes(k)
	if err != nil {
		panic(err)
	}
	if k == 0 || k%lanes != 0 {
		panic("compute: columns")
	}
	weights, _ := t.Block()
	steps := k / max(weights, lanes)
	for i, row := range rows {
		to, from := &dst[i*lanes], &row[:size][0]
		switch t {
		case quant.F32:
			unpackF32(to, from, steps)
		case quant.F16:
			unpackF16(to, from, steps)
		case quant.BF16:
			unpackBF16(to, from, steps)
		case quant.Q8_0:
			unpackQ8(to, from, steps)
		case quant.Q4_0:
			unpackQ40(to, from, steps)
		case quant.Q4_1:
			unpackQ41(to, from, steps)
		case quant.Q5_0:
			unpackQ50(to, from, steps)
		case quant.Q5_1:
			unpackQ51(to, from, steps)
		case quant.IQ4_NL:
			unpackIQ4(to, from, steps, &quant.IQ4Values)
		case quant.Q3_K:
			unpackQ3K(to, from, steps)
		case quant.Q4_K:
			unpackQ4K(to, from, steps)
		case quant.Q5_K:
			unpackQ5K(to, from, steps)
		case quant.Q6_K:
			unpackQ6K(to, from, steps)
		default:
			panic("compute: no vectors for " + t.String())
		}
	}
}

// These unpack a row: vectors of 8 weights, or blocks of the format. The first 8 weights go to to, and each 8 more groupRows·lanes floats
// further on.

//go:noescape
func unpackF32(to *float32, row *byte, vectors int)

//go:noescape
func unpackF16(to *float32, row *byte, vectors int)

//go:noescape
func unpackBF16(to *float32, row *byte, vectors int)

//go:noescape
func unpackQ8(to *float32, row *byte, blocks int)

//go:noescape
func unpackQ40(to *float32, row *byte, blocks int)

//go:noescape
func unpackQ41(to *float32, row *byte, blocks int)

//go:noescape
func unpackQ50(to *float32, row *byte, blocks int)

//go:noescape
func unpackQ51(to *float32, row *byte, blocks int)

//go:noescape
func unpackIQ4(to *float32, row *byte, blocks int, table *[16]int8)

//go:noescape
func unpackQ3K(to *float32, row *byte, blocks int)

//go:noescape
func unpackQ4K(to *float32, row *byte, blocks int)

//go:noescape
func unpackQ5K(to *float32, row *byte, blocks int)

//go:noescape
func unpackQ6K(to *float32, row *byte, blocks int)
