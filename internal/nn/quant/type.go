package quant

import (
	"fmt"
	"math"
)

// Type is a number format. The zero value is F32.
type Type uint8

// The formats, see the package's table.
const (
	F32 Type = iota
	F16
	BF16
	Q8_0
	Q4_0
	Q4_1
	Q5_0
	Q5_1
	Q3_K   //nolint:revive // ggml spells it so
	Q4_K   //nolint:revive // as above
	Q5_K   //nolint:revive // as above
	Q6_K   //nolint:revive // as above
	IQ4_NL //nolint:revive // as above
)

// format is what one line of the package's table says.
type format struct {
	name           string
	weights, bytes int // of a block
	decode         func(dst []float32, src []byte)
	encode         func(dst []byte, src []float32) // nil: the format can be read only
}

var formats = [...]format{
	F32:    {"F32", 1, 4, decodeF32, encodeF32},
	F16:    {"F16", 1, 2, decodeF16, encodeF16},
	BF16:   {"BF16", 1, 2, decodeBF16, encodeBF16},
	Q8_0:   {"Q8_0", 32, 34, decodeQ8x0, encodeQ8x0},
	Q4_0:   {"Q4_0", 32, 18, decodeQ4x0, nil},
	Q4_1:   {"Q4_1", 32, 20, decodeQ4x1, nil},
	Q5_0:   {"Q5_0", 32, 22, decodeQ5x0, nil},
	Q5_1:   {"Q5_1", 32, 24, decodeQ5x1, nil},
	Q3_K:   {"Q3_K", 256, 110, decodeQ3xK, nil},
	Q4_K:   {"Q4_K", 256, 144, decodeQ4xK, nil},
	Q5_K:   {"Q5_K", 256, 176, decodeQ5xK, nil},
	Q6_K:   {"Q6_K", 256, 210, decodeQ6xK, nil},
	IQ4_NL: {"IQ4_NL", 32, 18, decodeIQ4xNL, nil},
}

// Types are all formats.
func Types() []Type {
	all := make([]Type, len(formats))
	for i := range all {
		all[i] = Type(i)
	}
	return all
}

func (t Type) format() (f format, ok bool) {
	if int(t) < len(formats) {
		return formats[t], true
	}
	return format{}, false
}

// String returns the name of the format as model files spell it, for example "Q4_1".
func (t Type) String() string {
	if f, ok := t.format(); ok {
		return f.name
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// Block returns how many weights a block holds and how many bytes it takes; 0, 0 for an unknown format.
func (t Type) Block() (weights, bytes int) {
	f, _ := t.format()
	return f.weights, f.bytes
}

// Bytes returns how many bytes a row of that many weights takes. It is an error if the number is negative, not a
// whole number of blocks, or so large that the bytes overflow an int, and if the format is unknown.
func (t Type) Bytes(weights int) (int, error) {
	f, ok := t.format()
	if !ok {
		return 0, fmt.Errorf("quant: unknown format %v", t)
	}
	if weights < 0 || weights%f.weights != 0 {
		return 0, fmt.Errorf("quant: %d weights in %v: want a multiple of %d", weights, t, f.weights)
	}
	blocks := weights / f.weights
	if blocks > math.MaxInt/f.bytes {
		return 0, fmt.Errorf("quant: %d weights in %v: too many", weights, t)
	}
	return blocks * f.bytes, nil
}
