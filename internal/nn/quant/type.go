package quant

import (
	"fmt"
	"math"
	"strings"
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

// Types are all formats.
func Types() []Type {
	return []Type{F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL}
}

// format is what one line of the package's table says.
type format struct {
	name           string
	weights, bytes int
}

func (t Type) format() (format, bool) {
	switch t {
	case F32:
		return format{"F32", 1, 4}, true
	case F16:
		return format{"F16", 1, 2}, true
	case BF16:
		return format{"BF16", 1, 2}, true
	case Q8_0:
		return format{"Q8_0", 32, 34}, true
	case Q4_0:
		return format{"Q4_0", 32, 18}, true
	case Q4_1:
		return format{"Q4_1", 32, 20}, true
	case Q5_0:
		return format{"Q5_0", 32, 22}, true
	case Q5_1:
		return format{"Q5_1", 32, 24}, true
	case Q3_K:
		return format{"Q3_K", 256, 110}, true
	case Q4_K:
		return format{"Q4_K", 256, 144}, true
	case Q5_K:
		return format{"Q5_K", 256, 176}, true
	case Q6_K:
		return format{"Q6_K", 256, 210}, true
	case IQ4_NL:
		return format{"IQ4_NL", 32, 18}, true
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

// Parse returns the format of a name as [Type.String] gives it, in lower or upper case.
func Parse(name string) (Type, error) {
	for _, t := range Types() {
		if strings.EqualFold(t.String(), name) {
			return t, nil
		}
	}
	return 0, fmt.Errorf("quant: %q is not a known format; known are %v", name, Types())
}
