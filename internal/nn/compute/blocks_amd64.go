//go:build goexperiment.simd

package compute

import (
	"encoding/binary"
	"unsafe"

	"simd/archsimd"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// place is where the weights of a block go: the next 8 of them stride floats further on. What makes one has checked that they have room.
type place struct{ to unsafe.Pointer }

func (p place) put(i int, v vector) { v.Store((*vec)(p.further(i).to)) }

// further is the place of the weights from the i-th 8 on.
func (p place) further(i int) place { return place{unsafe.Add(p.to, 4*stride*i)} }

// unpackBlocks unpacks a row, a block at a time. Each weight has the bits that [quant.Dequantize] gives it, as long as scales are finite.
func unpackBlocks(t quant.Type, to []float32, row []byte) {
	small := archsimd.BroadcastFloat32x8(smallHalf)
	weights, bytes := t.Block()
	for at := 0; len(row) >= bytes; at += weights / lanes * stride {
		_ = to[at+(weights/lanes-1)*stride+lanes-1]
		p := place{unsafe.Pointer(&to[at])}
		switch t {
		case quant.Q8_0:
			blockQ8(p, (*[34]byte)(row), small)
		case quant.Q4_0:
			blockQ40(p, (*[18]byte)(row), small)
		case quant.Q4_1:
			blockQ41(p, (*[20]byte)(row), small)
		case quant.Q5_0:
			blockQ50(p, (*[22]byte)(row), small)
		case quant.Q5_1:
			blockQ51(p, (*[24]byte)(row), small)
		case quant.IQ4_NL:
			blockIQ4NL(p, (*[18]byte)(row), small)
		case quant.Q3_K:
			blockQ3K(p, (*[110]byte)(row), small)
		case quant.Q4_K:
			blockQ4K(p, (*[144]byte)(row), small)
		case quant.Q5_K:
			blockQ5K(p, (*[176]byte)(row), small)
		case quant.Q6_K:
			blockQ6K(p, (*[210]byte)(row), small)
		default:
			panic("compute: no vectors for " + t.String())
		}
		row = row[bytes:]
	}
}

func blockQ8(p place, block *[34]byte, small vector) {
	d := half((*[2]byte)(block[0:]), small)
	left, last := archsimd.LoadUint8x16((*[16]uint8)(block[2:])), archsimd.LoadUint8x16((*[16]uint8)(block[18:]))
	p.put(0, left.AsInt8x16().ExtendLo8ToInt32().ConvertToFloat32().Mul(d))
	p.put(1, left.ConcatShiftBytesRight(8, left).AsInt8x16().ExtendLo8ToInt32().ConvertToFloat32().Mul(d))
	p.put(2, last.AsInt8x16().ExtendLo8ToInt32().ConvertToFloat32().Mul(d))
	p.put(3, last.ConcatShiftBytesRight(8, last).AsInt8x16().ExtendLo8ToInt32().ConvertToFloat32().Mul(d))
}

func blockQ40(p place, block *[18]byte, small vector) {
	d, nibble, eight := half((*[2]byte)(block[0:]), small), archsimd.BroadcastInt32x8(15), archsimd.BroadcastInt32x8(8)
	left, right := bytesOf((*[16]uint8)(block[2:]))
	p.put(0, left.And(nibble).Sub(eight).ConvertToFloat32().Mul(d))
	p.put(1, right.And(nibble).Sub(eight).ConvertToFloat32().Mul(d))
	p.put(2, left.ShiftAllRight(4).Sub(eight).ConvertToFloat32().Mul(d))
	p.put(3, right.ShiftAllRight(4).Sub(eight).ConvertToFloat32().Mul(d))
}

func blockQ41(p place, block *[20]byte, small vector) {
	d, m, nibble := half((*[2]byte)(block[0:]), small), half((*[2]byte)(block[2:]), small), archsimd.BroadcastInt32x8(15)
	left, right := bytesOf((*[16]uint8)(block[4:]))
	p.put(0, left.And(nibble).ConvertToFloat32().Mul(d).Add(m))
	p.put(1, right.And(nibble).ConvertToFloat32().Mul(d).Add(m))
	p.put(2, left.ShiftAllRight(4).ConvertToFloat32().Mul(d).Add(m))
	p.put(3, right.ShiftAllRight(4).ConvertToFloat32().Mul(d).Add(m))
}

// fifthBits are how far the fifth bits of 8 weights, in the bytes of 32 weights, lie above the bit that they become.
var fifthBits = [4][lanes]int32{
	{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}, {16, 17, 18, 19, 20, 21, 22, 23}, {24, 25, 26, 27, 28, 29, 30, 31},
}

// fives are the numbers of 32 weights, of 5 bits each: 4 bytes of fifth bits, and 16 bytes of the others.
func fives(fifth *[4]byte, four *[16]byte) (a, b, c, d archsimd.Int32x8) {
	nibble, sixteen := archsimd.BroadcastInt32x8(15), archsimd.BroadcastInt32x8(16)
	bits := archsimd.BroadcastInt32x8(int32(binary.LittleEndian.Uint32(fifth[:])))
	left, right := bytesOf((*[16]uint8)(four))
	a = left.And(nibble).Or(bits.ShiftRight(archsimd.LoadInt32x8(&fifthBits[0])).ShiftAllLeft(4).And(sixteen))
	b = right.And(nibble).Or(bits.ShiftRight(archsimd.LoadInt32x8(&fifthBits[1])).ShiftAllLeft(4).And(sixteen))
	c = left.ShiftAllRight(4).Or(bits.ShiftRight(archsimd.LoadInt32x8(&fifthBits[2])).ShiftAllLeft(4).And(sixteen))
	d = right.ShiftAllRight(4).Or(bits.ShiftRight(archsimd.LoadInt32x8(&fifthBits[3])).ShiftAllLeft(4).And(sixteen))
	return a, b, c, d
}

func blockQ50(p place, block *[22]byte, small vector) {
	scale, sixteen := half((*[2]byte)(block[0:]), small), archsimd.BroadcastInt32x8(16)
	a, b, c, d := fives((*[4]byte)(block[2:]), (*[16]byte)(block[6:]))
	p.put(0, a.Sub(sixteen).ConvertToFloat32().Mul(scale))
	p.put(1, b.Sub(sixteen).ConvertToFloat32().Mul(scale))
	p.put(2, c.Sub(sixteen).ConvertToFloat32().Mul(scale))
	p.put(3, d.Sub(sixteen).ConvertToFloat32().Mul(scale))
}

func blockQ51(p place, block *[24]byte, small vector) {
	scale, least := half((*[2]byte)(block[0:]), small), half((*[2]byte)(block[2:]), small)
	a, b, c, d := fives((*[4]byte)(block[4:]), (*[16]byte)(block[8:]))
	p.put(0, a.ConvertToFloat32().Mul(scale).Add(least))
	p.put(1, b.ConvertToFloat32().Mul(scale).Add(least))
	p.put(2, c.ConvertToFloat32().Mul(scale).Add(least))
	p.put(3, d.ConvertToFloat32().Mul(scale).Add(least))
}

func blockIQ4NL(p place, block *[18]byte, small vector) {
	scale, table := half((*[2]byte)(block[0:]), small), archsimd.LoadInt8x16(&quant.IQ4Values).AsUint8x16()
	q, nibble := archsimd.LoadUint8x16((*[16]uint8)(block[2:])), archsimd.BroadcastUint8x16(15)
	low := table.PermuteOrZero(q.And(nibble).AsInt8x16())
	high := table.PermuteOrZero(q.AsUint16x8().ShiftAllRight(4).AsUint8x16().And(nibble).AsInt8x16())
	p.put(0, low.AsInt8x16().ExtendLo8ToInt32().ConvertToFloat32().Mul(scale))
	p.put(1, low.ConcatShiftBytesRight(8, low).AsInt8x16().ExtendLo8ToInt32().ConvertToFloat32().Mul(scale))
	p.put(2, high.AsInt8x16().ExtendLo8ToInt32().ConvertToFloat32().Mul(scale))
	p.put(3, high.ConcatShiftBytesRight(8, high).AsInt8x16().ExtendLo8ToInt32().ConvertToFloat32().Mul(scale))
}

// times is a small whole number times d, in every lane.
func times(n int, d vector) vector {
	return archsimd.BroadcastInt32x8(int32(n)).ConvertToFloat32().Mul(d)
}

func blockQ4K(p place, block *[144]byte, small vector) {
	d, dmin, nibble := half((*[2]byte)(block[0:]), small), half((*[2]byte)(block[2:]), small), archsimd.BroadcastInt32x8(15)
	for j := range 4 { // 64 weights
		s0, m0 := quant.ScaleQ4K((*[12]byte)(block[4:]), 2*j)
		s1, m1 := quant.ScaleQ4K((*[12]byte)(block[4:]), 2*j+1)
		scale0, least0, scale1, least1 := times(s0, d), times(m0, dmin), times(s1, d), times(m1, dmin)
		to, q := p.further(8*j), (*[32]byte)(block[16+32*j:])
		for i := range 2 {
			a, b := bytesOf((*[16]uint8)(q[16*i:]))
			to.put(2*i, a.And(nibble).ConvertToFloat32().Mul(scale0).Sub(least0))
			to.put(2*i+1, b.And(nibble).ConvertToFloat32().Mul(scale0).Sub(least0))
			to.put(2*i+4, a.ShiftAllRight(4).ConvertToFloat32().Mul(scale1).Sub(least1))
			to.put(2*i+5, b.ShiftAllRight(4).ConvertToFloat32().Mul(scale1).Sub(least1))
		}
	}
}

func blockQ5K(p place, block *[176]byte, small vector) {
	d, dmin := half((*[2]byte)(block[0:]), small), half((*[2]byte)(block[2:]), small)
	nibble, sixteen := archsimd.BroadcastInt32x8(15), archsimd.BroadcastInt32x8(16)
	for i := range 2 { // 16 of each 32 weights
		f0, f1 := bytesOf((*[16]uint8)(block[16+16*i:]))
		f0, f1 = f0.ShiftAllLeft(4), f1.ShiftAllLeft(4)
		for j := range 4 { // 64 weights
			s0, m0 := quant.ScaleQ4K((*[12]byte)(block[4:]), 2*j)
			s1, m1 := quant.ScaleQ4K((*[12]byte)(block[4:]), 2*j+1)
			scale0, least0, scale1, least1 := times(s0, d), times(m0, dmin), times(s1, d), times(m1, dmin)
			to := p.further(8*j + 2*i)
			a, b := bytesOf((*[16]uint8)(block[48+32*j+16*i:]))
			to.put(0, a.And(nibble).Or(f0.And(sixteen)).ConvertToFloat32().Mul(scale0).Sub(least0))
			to.put(1, b.And(nibble).Or(f1.And(sixteen)).ConvertToFloat32().Mul(scale0).Sub(least0))
			f0, f1 = f0.ShiftAllRight(1), f1.ShiftAllRight(1)
			to.put(4, a.ShiftAllRight(4).Or(f0.And(sixteen)).ConvertToFloat32().Mul(scale1).Sub(least1))
			to.put(5, b.ShiftAllRight(4).Or(f1.And(sixteen)).ConvertToFloat32().Mul(scale1).Sub(least1))
			f0, f1 = f0.ShiftAllRight(1), f1.ShiftAllRight(1)
		}
	}
}

func blockQ6K(p place, block *[210]byte, small vector) {
	d := half((*[2]byte)(block[208:]), small)
	nibble, quarter, middle := archsimd.BroadcastInt32x8(15), archsimd.BroadcastInt32x8(0x30), archsimd.BroadcastInt32x8(32)
	for k := range 4 { // 16 of each 32 weights, of 128
		part, i := k/2, k%2
		low, scales := (*[64]byte)(block[64*part:]), (*[8]byte)(block[192+8*part:])
		a0, b0 := bytesOf((*[16]uint8)(low[16*i:]))
		a1, b1 := bytesOf((*[16]uint8)(low[32+16*i:]))
		h0, h1 := bytesOf((*[16]uint8)(block[128+32*part+16*i:]))
		to := p.further(16*part + 2*i)
		scale := times(int(int8(scales[i])), d)
		to.put(0, a0.And(nibble).Or(h0.ShiftAllLeft(4).And(quarter)).Sub(middle).ConvertToFloat32().Mul(scale))
		to.put(1, b0.And(nibble).Or(h1.ShiftAllLeft(4).And(quarter)).Sub(middle).ConvertToFloat32().Mul(scale))
		scale = times(int(int8(scales[2+i])), d)
		to.put(4, a1.And(nibble).Or(h0.ShiftAllLeft(2).And(quarter)).Sub(middle).ConvertToFloat32().Mul(scale))
		to.put(5, b1.And(nibble).Or(h1.ShiftAllLeft(2).And(quarter)).Sub(middle).ConvertToFloat32().Mul(scale))
		scale = times(int(int8(scales[4+i])), d)
		to.put(8, a0.ShiftAllRight(4).Or(h0.And(quarter)).Sub(middle).ConvertToFloat32().Mul(scale))
		to.put(9, b0.ShiftAllRight(4).Or(h1.And(quarter)).Sub(middle).ConvertToFloat32().Mul(scale))
		scale = times(int(int8(scales[6+i])), d)
		to.put(12, a1.ShiftAllRight(4).Or(h0.ShiftAllRight(2).And(quarter)).Sub(middle).ConvertToFloat32().Mul(scale))
		to.put(13, b1.ShiftAllRight(4).Or(h1.ShiftAllRight(2).And(quarter)).Sub(middle).ConvertToFloat32().Mul(scale))
	}
}

func blockQ3K(p place, block *[110]byte, small vector) {
	d := half((*[2]byte)(block[108:]), small)
	quarter, four := archsimd.BroadcastInt32x8(3), archsimd.BroadcastInt32x8(4)
	for i := range 2 { // 16 of each 32 weights
		t0, t1 := bytesOf((*[16]uint8)(block[16*i:]))
		t0, t1 = t0.ShiftAllLeft(2), t1.ShiftAllLeft(2)
		for part := range 2 {
			a, b := bytesOf((*[16]uint8)(block[32+32*part+16*i:]))
			for group := range 4 {
				scale := times(quant.ScaleQ3K((*[12]byte)(block[96:]), 8*part+2*group+i), d)
				to := p.further(16*part + 4*group + 2*i)
				to.put(0, a.And(quarter).Or(t0.And(four)).Sub(four).ConvertToFloat32().Mul(scale))
				to.put(1, b.And(quarter).Or(t1.And(four)).Sub(four).ConvertToFloat32().Mul(scale))
				a, b, t0, t1 = a.ShiftAllRight(2), b.ShiftAllRight(2), t0.ShiftAllRight(1), t1.ShiftAllRight(1)
			}
		}
	}
}
