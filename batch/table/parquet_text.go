package table

import (
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// parquetText returns how values of a type are written.
func parquetText(typ parquet.Type) func(parquet.Value) string {
	logical := typ.LogicalType()
	if logical == nil {
		logical = &format.LogicalType{}
	}
	switch {
	case logical.Decimal != nil:
		scale := int(logical.Decimal.Scale)
		return func(v parquet.Value) string { return decimalText(v, scale) }
	case logical.Date != nil:
		return func(v parquet.Value) string { return time.Unix(int64(v.Int32())*86400, 0).UTC().Format(time.DateOnly) }
	case logical.Time != nil:
		unit := logical.Time.Unit
		return func(v parquet.Value) string { return instant(number(v), unit).Format("15:04:05.999999999") }
	case logical.Timestamp != nil:
		unit, layout := logical.Timestamp.Unit, "2006-01-02T15:04:05.999999999"
		if logical.Timestamp.IsAdjustedToUTC {
			layout += "Z"
		}
		return func(v parquet.Value) string { return instant(number(v), unit).Format(layout) }
	case logical.Integer != nil && !logical.Integer.IsSigned:
		return func(v parquet.Value) string {
			if v.Kind() == parquet.Int32 {
				return strconv.FormatUint(uint64(v.Uint32()), 10)
			}
			return strconv.FormatUint(v.Uint64(), 10)
		}
	case logical.UUID != nil:
		return func(v parquet.Value) string {
			s := hex.EncodeToString(v.ByteArray())
			if len(s) != 32 {
				return s
			}
			return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
		}
	case logical.Bson != nil:
		return func(v parquet.Value) string { return base64.StdEncoding.EncodeToString(v.ByteArray()) }
	}
	return plainText
}

// plainText writes a value without a logical type.
func plainText(v parquet.Value) string {
	switch v.Kind() {
	case parquet.Boolean:
		return strconv.FormatBool(v.Boolean())
	case parquet.Int32, parquet.Int64:
		return strconv.FormatInt(number(v), 10)
	case parquet.Float:
		return floatText(float64(v.Float()), 32)
	case parquet.Double:
		return floatText(v.Double(), 64)
	case parquet.Int96: // nanoseconds of the day, and the Julian day
		n := v.Int96()
		nanos := int64(uint64(n[0]) | uint64(n[1])<<32) //nolint:gosec // as it is stored
		day := int64(int32(n[2])) - 2440588             //nolint:gosec // as it is stored
		return time.Unix(day*86400, nanos).UTC().Format("2006-01-02T15:04:05.999999999")
	case parquet.FixedLenByteArray:
		return base64.StdEncoding.EncodeToString(v.ByteArray())
	}
	return string(v.ByteArray())
}

// number returns a signed integer.
func number(v parquet.Value) int64 {
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

// instant returns the time so many units after the beginning of 1970.
func instant(n int64, unit format.TimeUnit) time.Time {
	switch {
	case unit.Millis != nil:
		return time.UnixMilli(n).UTC()
	case unit.Micros != nil:
		return time.UnixMicro(n).UTC()
	}
	return time.Unix(0, n).UTC()
}

// decimalText writes a decimal with all digits of its scale.
func decimalText(v parquet.Value, scale int) string {
	n := new(big.Int)
	switch v.Kind() {
	case parquet.Int32, parquet.Int64:
		n.SetInt64(number(v))
	default: // two's complement, most significant byte first
		b := v.ByteArray()
		n.SetBytes(b)
		if len(b) > 0 && b[0]&0x80 != 0 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
		}
	}
	s, minus := n.String(), ""
	if s[0] == '-' {
		s, minus = s[1:], "-"
	}
	if scale <= 0 || scale > 1000 {
		return minus + s
	}
	if len(s) <= scale {
		s = strings.Repeat("0", scale+1-len(s)) + s
	}
	return minus + s[:len(s)-scale] + "." + s[len(s)-scale:]
}

// jsonOfParquet writes nested values as JSON: groups as objects, lists and repeated values as arrays, maps as arrays of objects with key
// and value.
type jsonOfParquet struct {
	types map[*parquet.Column]parquet.Type // see oldTypes
	out   []byte
	base  int
	cols  [][]parquet.Value
}

func (j *jsonOfParquet) split(values []parquet.Value, from, to int) {
	j.base, j.cols = from, make([][]parquet.Value, to-from)
	for _, v := range values {
		j.cols[v.Column()-from] = append(j.cols[v.Column()-from], v)
	}
}

// span is the part of each leaf's values that belongs to a node.
type span []([2]int)

func (j *jsonOfParquet) whole() span {
	s := make(span, len(j.cols))
	for i, c := range j.cols {
		s[i] = [2]int{0, len(c)}
	}
	return s
}

// field writes a node, below so many repetitions and definitions. s has the spans of its leaves, from the node's first.
func (j *jsonOfParquet) field(c *parquet.Column, repetition, definition int, s span) {
	first := j.first(c)
	switch v := j.cols[first][s[first][0]]; {
	case c.Repeated():
		j.items(c, repetition+1, definition+1, s)
	case c.Optional() && v.DefinitionLevel() <= definition:
		j.out = append(j.out, "null"...)
	case c.Optional():
		j.value(c, repetition, definition+1, s)
	default:
		j.value(c, repetition, definition, s)
	}
}

// first returns the first leaf of a node.
func (j *jsonOfParquet) first(c *parquet.Column) int {
	for !c.Leaf() {
		c = c.Columns()[0]
	}
	return c.Index() - j.base
}

// items writes the values of a repeated node.
func (j *jsonOfParquet) items(c *parquet.Column, repetition, definition int, s span) {
	j.out = append(j.out, '[')
	first := j.first(c)
	if j.cols[first][s[first][0]].DefinitionLevel() >= definition {
		rest := slices.Clone(s)
		for more := false; ; more = true {
			if more {
				j.out = append(j.out, ',')
			}
			one := slices.Clone(rest)
			for leaf := first; leaf < first+leaves(c); leaf++ {
				end := rest[leaf][0] + 1
				for end < rest[leaf][1] && j.cols[leaf][end].RepetitionLevel() > repetition {
					end++
				}
				one[leaf][1], rest[leaf][0] = end, end
			}
			j.value(c, repetition, definition, one)
			if rest[first][0] >= rest[first][1] {
				break
			}
		}
	}
	j.out = append(j.out, ']')
}

// value writes a node that is there.
func (j *jsonOfParquet) value(c *parquet.Column, repetition, definition int, s span) {
	if c.Leaf() {
		j.leaf(c, j.cols[j.first(c)][s[j.first(c)][0]])
		return
	}
	inner := c.Columns()
	logical := c.Type().LogicalType()
	if old := j.types[c]; old != nil {
		logical = old.LogicalType()
	}
	if logical != nil && (logical.List != nil || logical.Map != nil) && len(inner) == 1 && inner[0].Repeated() {
		j.items(inner[0], repetition+1, definition+1, s)
		return
	}
	if c.Repeated() && len(inner) == 1 && (c.Name() == "list" || c.Name() == "bag" || c.Name() == "array") {
		j.field(inner[0], repetition, definition, s)
		return
	}
	j.out = append(j.out, '{')
	for i, c := range inner {
		if i > 0 {
			j.out = append(j.out, ',')
		}
		j.out = append(append(j.out, quoteJSON(c.Name())...), ':')
		j.field(c, repetition, definition, s)
	}
	j.out = append(j.out, '}')
}

func (j *jsonOfParquet) leaf(c *parquet.Column, v parquet.Value) {
	text := parquetText(c.Type())(v)
	logical := c.Type().LogicalType()
	plain := logical == nil || logical.Integer != nil || logical.Decimal != nil
	digits := text != "" && (text[len(text)-1] >= '0' && text[len(text)-1] <= '9')
	numeric := v.Kind() <= parquet.Double && v.Kind() != parquet.Int96 && digits
	if plain && (numeric || v.Kind() == parquet.Boolean || logical != nil) {
		j.out = append(j.out, text...)
		return
	}
	j.out = append(j.out, quoteJSON(text)...)
}
