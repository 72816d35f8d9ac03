package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Quantize packs src into dst as ggml's reference code does, rounding to nearest. The formats are F32, F16, BF16 and Q8_0.
// It is an error if the format is another one, len(src) is no whole number of blocks, or dst is shorter
// than they are. Weights that are not finite spoil their block.
func Quantize(t Type, dst []byte, src []float32) error {
	size, err := t.Bytes(len(src))
	if err != nil {
		return err
	}
	if len(dst) < size {
		return fmt.Errorf("quant: %d bytes for %d weights in %v: want %d", len(dst), len(src), t, size)
	}
	f, _ := t.format()
	if f.encode == nil {
		return fmt.Errorf("quant: %v can be read only", t)
	}
	for ; len(src) > 0; dst, src = dst[f.bytes:], src[f.weights:] {
		f.encode(dst[:f.bytes], src[:f.weights])
	}
	return nil
}

func encodeF32(dst []byte, src []float32) {
	binary.LittleEndian.PutUint32(dst, math.Float32bits(src[0]))
}
func encodeF16(dst []byte, src []float32)  { binary.LittleEndian.PutUint16(dst, ToF16(src[0])) }
func encodeBF16(dst []byte, src []float32) { binary.LittleEndian.PutUint16(dst, ToBF16(src[0])) }

// encodeQ8x0: the largest magnitude becomes 127.
func encodeQ8x0(dst []byte, src []float32) {
	var most float32
	for _, x := range src {
		most = max(most, float32(math.Abs(float64(x))))
	}
	d := most / 127
	encodeF16(dst, []float32{d})
	scale := float32(0) // of a block of zeros
	if d != 0 {
		scale = 1 / d
	}
	for i, x := range src {
		dst[2+i] = byte(int8(math.Round(float64(x * scale))))
	}
}
