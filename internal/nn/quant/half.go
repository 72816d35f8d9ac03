package quant

import "math"

// FromF16 returns the value of an IEEE half precision number; every one has an exact float32.
func FromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	x := uint32(h&0x7fff) << 13
	if x >= 31<<23 { // infinity or not a number
		return math.Float32frombits(sign | x | 255<<23)
	}
	// The exponent is off by the difference of the biases, 112; multiplying is exact for subnormal numbers too.
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(x)*0x1p112))
}

// ToF16 rounds to half precision, ties to even. What is too large becomes infinity.
func ToF16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits >> 16 & 0x8000)
	bits &= 0x7fffffff
	switch {
	case bits > 255<<23:
		return sign | 0x7e00 | uint16(bits>>13&0x3ff) // not a number stays so
	case bits >= 0x477ff000: // 65520 and above
		return sign | 0x7c00
	case bits < 113<<23: // below 2^-14: subnormal, or zero
		// The addition leaves the multiples of 2^-24 in the low bits, rounded to even by the processor.
		return sign | uint16(math.Float32bits(math.Float32frombits(bits)+0.5)-0x3f000000)
	}
	bits += 0xfff + bits>>13&1 // half of the last place that stays, ties to even
	return sign | uint16((bits-112<<23)>>13)
}

// FromBF16 returns the value of a bfloat16: the upper half of a float32.
func FromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// ToBF16 rounds to bfloat16, ties to even.
func ToBF16(f float32) uint16 {
	bits := math.Float32bits(f)
	if bits&0x7fffffff > 255<<23 {
		return uint16(bits>>16) | 0x40 // not a number stays so
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
