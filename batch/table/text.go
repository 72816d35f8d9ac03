package table

import (
	"math"
	"strconv"
	"strings"
)

// floatText returns the shortest decimal that reads back as the same number, in the form of JSON where JSON has one.
func floatText(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	s := strconv.FormatFloat(f, format, -1, bits)
	if i := strings.Index(s, "e-0"); i >= 0 { // e-09 becomes e-9
		s = s[:i+2] + s[i+3:]
	}
	return s
}
