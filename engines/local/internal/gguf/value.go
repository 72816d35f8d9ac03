package gguf

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
)

// Kind is the type of a metadata value, numbered as in files.
type Kind uint32

// The kinds of values.
const (
	Uint8 Kind = iota
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Float32
	Bool
	String
	Array
	Uint64
	Int64
	Float64
)

// kindTable has each kind's name and size in bytes, 0 if that varies.
var kindTable = [...]struct {
	name string
	size int
}{
	{"uint8", 1},
	{"int8", 1},
	{"uint16", 2},
	{"int16", 2},
	{"uint32", 4},
	{"int32", 4},
	{"float32", 4},
	{"bool", 1},
	{"string", 0},
	{"array", 0},
	{"uint64", 8},
	{"int64", 8},
	{"float64", 8},
}

// String returns the kind's name, for example "uint32".
func (k Kind) String() string {
	if int(k) < len(kindTable) {
		return kindTable[k].name
	}
	return fmt.Sprintf("kind %d", uint32(k))
}

// size is the number of bytes of a value, 0 if it varies or the kind is unknown.
func (k Kind) size() int {
	if int(k) < len(kindTable) {
		return kindTable[k].size
	}
	return 0
}

// least is the number of bytes that a value takes at least, 0 if the kind is unknown.
func (k Kind) least() int {
	switch k {
	case String:
		return 8 // its length
	case Array:
		return 12 // kind and length
	}
	return k.size()
}

// maxDepth bounds arrays of arrays. No file in use has any.
const maxDepth = 4

// Value is one metadata value. It points into the file.
type Value struct {
	Kind Kind
	// Elem is the kind of an array's elements and Len their number.
	Elem Kind
	Len  int
	raw  []byte
}

// value reads a value of a kind, or skips over it: what it returns is a piece of the file.
func (c *cursor) value(kind Kind, what string, depth int) (Value, error) {
	switch kind {
	case String:
		raw, err := c.text(what)
		return Value{Kind: kind, raw: raw}, err
	case Array:
		return c.array(what, depth)
	}
	if kind.size() == 0 {
		return Value{}, fmt.Errorf("%s: unknown %v", what, kind)
	}
	raw, err := c.take(uint64(kind.size()), what)
	if err == nil && kind == Bool && raw[0] > 1 {
		err = fmt.Errorf("%s: %d is not a bool", what, raw[0])
	}
	return Value{Kind: kind, raw: raw}, err
}

func (c *cursor) array(what string, depth int) (Value, error) {
	if depth >= maxDepth {
		return Value{}, fmt.Errorf("%s: arrays nested deeper than %d", what, maxDepth)
	}
	k, err := c.uint32(what)
	if err != nil {
		return Value{}, err
	}
	elem := Kind(k)
	if elem.least() == 0 {
		return Value{}, fmt.Errorf("%s: array of unknown %v", what, elem)
	}
	n, err := c.count(what, elem.least())
	if err != nil {
		return Value{}, err
	}
	begin := c.at
	if size := elem.size(); size > 0 {
		c.at += n * size // count has seen that they are there
	} else {
		for range n {
			if _, err := c.value(elem, what, depth+1); err != nil {
				return Value{}, err
			}
		}
	}
	return Value{Kind: Array, Elem: elem, Len: n, raw: c.data[begin:c.at:c.at]}, nil
}

// Text returns a string, or "" and false for another kind. It is a copy.
func (v Value) Text() (string, bool) {
	if v.Kind != String {
		return "", false
	}
	return string(v.raw), true
}

// Bool returns a bool, or false and false for another kind.
func (v Value) Bool() (value, ok bool) {
	if v.Kind != Bool {
		return false, false
	}
	return v.raw[0] == 1, true
}

// Int returns an integer of any width, or false for another kind or one that does not fit.
func (v Value) Int() (int64, bool) { return integer(v.Kind, v.raw) }

// Float returns a number of any kind, or false for what is none.
func (v Value) Float() (float64, bool) {
	switch v.Kind {
	case Float32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.raw))), true
	case Float64:
		return math.Float64frombits(binary.LittleEndian.Uint64(v.raw)), true
	}
	n, ok := v.Int()
	return float64(n), ok
}

func integer(k Kind, raw []byte) (int64, bool) {
	switch k {
	case Uint8:
		return int64(raw[0]), true
	case Int8:
		return int64(int8(raw[0])), true
	case Uint16:
		return int64(binary.LittleEndian.Uint16(raw)), true
	case Int16:
		return int64(int16(binary.LittleEndian.Uint16(raw))), true
	case Uint32:
		return int64(binary.LittleEndian.Uint32(raw)), true
	case Int32:
		return int64(int32(binary.LittleEndian.Uint32(raw))), true
	case Int64, Uint64:
		n := int64(binary.LittleEndian.Uint64(raw))
		return n, n >= 0 || k == Int64
	}
	return 0, false
}

// Texts returns the strings of an array, each a piece of the file that must not be changed; nothing for other values.
func (v Value) Texts() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		if v.Kind != Array || v.Elem != String {
			return
		}
		raw := v.raw
		for i := range v.Len {
			n := binary.LittleEndian.Uint64(raw) // Parse has checked it
			if !yield(i, raw[8:8+n]) {
				return
			}
			raw = raw[8+n:]
		}
	}
}

// Floats returns the numbers of an array of float32. Nothing for other values.
func (v Value) Floats() iter.Seq2[int, float32] {
	return elements(v, v.Elem == Float32, func(raw []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(raw)) })
}

// Ints returns the integers of an array of any width; those that do not fit are -1. Nothing for other values.
func (v Value) Ints() iter.Seq2[int, int64] {
	return elements(v, v.Elem.size() > 0, func(raw []byte) int64 {
		if n, ok := integer(v.Elem, raw); ok {
			return n
		}
		return -1
	})
}

// elements reads an array of values of one size, if they are of the kind that is wanted.
func elements[T any](v Value, wanted bool, read func(raw []byte) T) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		size := v.Elem.size()
		for i := 0; wanted && v.Kind == Array && i < v.Len; i++ {
			if !yield(i, read(v.raw[i*size:])) {
				return
			}
		}
	}
}
