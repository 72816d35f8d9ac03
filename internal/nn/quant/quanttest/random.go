// Package quanttest makes packed weights for tests, also in formats that [quant.Quantize] cannot write. Tests of several packages use it.
package quanttest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// numbers are where a block of random bytes has half precision numbers.
type numbers struct {
	scale, least int
	// middle is what the minimum is of the scale, so that weights lie on both sides of 0; 0: there is no minimum.
	middle float64
}

var formats = map[quant.Type]numbers{
	quant.Q8_0: {}, quant.Q4_0: {}, quant.Q4_1: {0, 2, -7.5}, quant.Q5_0: {}, quant.Q5_1: {0, 2, -15.5}, quant.Q3_K: {scale: 108},
	quant.Q4_K: {0, 2, 7.5}, quant.Q5_K: {0, 2, 15.5}, quant.Q6_K: {scale: 208}, quant.IQ4_NL: {},
}

// Random returns n weights around 0, packed, whose standard deviation is spread. In formats with blocks all bytes but the scales are
// random, so that every number a block can hold comes up. It panics if n weights are no whole number of blocks.
func Random(t quant.Type, n int, spread float64, seed uint64) []byte {
	size, err := t.Bytes(n)
	if err != nil {
		panic(err)
	}
	random := rand.New(rand.NewPCG(seed, 7))
	data, weights := make([]byte, size), make([]float32, n)
	where, ok := formats[t]
	if !ok {
		for i := range weights {
			weights[i] = float32(spread * random.NormFloat64())
		}
		if err := quant.Quantize(t, data, weights); err != nil {
			panic(err)
		}
		return data
	}
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	_, block := t.Block()
	factors := make([]float64, size/block) // no two blocks have the same scale
	for i := range factors {
		factors[i] = .5 + random.Float64()
	}
	scale := func(spread float64) {
		for i, factor := range factors {
			b, d := data[i*block:], spread*factor
			binary.LittleEndian.PutUint16(b[where.scale:], quant.ToF16(float32(d)))
			if where.middle != 0 {
				binary.LittleEndian.PutUint16(b[where.least:], quant.ToF16(float32(d*where.middle)))
			}
		}
	}
	scale(1)
	quant.Dequantize(t, weights, data)
	squares := 0.0
	for _, w := range weights {
		squares += float64(w) * float64(w)
	}
	scale(spread / math.Sqrt(squares/float64(n)))
	return data
}
