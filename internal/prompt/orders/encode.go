package orders

import (
	"encoding/binary"
	"errors"

	"github.com/zeebo/xxh3"
)

// Format is the version of what Encode makes, its first byte. Replicas of different formats do not read each other's.
const Format = 1

// ErrFormat: bytes that Encode has not made for this place.
var ErrFormat = errors.New("orders: not an order of this place")

// Encode renders a valid order for a place: the format (1 byte), n-1 (2), the order (1 byte each, 2 if n > 256), and an
// xxh3 of these and the place (8), little-endian. It is 11 + n bytes for up to 256 documents.
func Encode(k Key, order []int) []byte {
	b := make([]byte, 0, 11+2*len(order))
	b = append(b, Format)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(order)-1))
	for _, i := range order {
		if len(order) <= 256 {
			b = append(b, byte(i))
		} else {
			b = binary.LittleEndian.AppendUint16(b, uint16(i))
		}
	}
	return binary.LittleEndian.AppendUint64(b, seal(k, b))
}

// Decode is the inverse of Encode. What it returns without an error is valid and was encoded for this place, accidents
// that a checksum of 64 bits does not find excepted.
func Decode(k Key, b []byte) ([]int, error) {
	const around = 1 + 2 + 8
	if len(b) <= around || b[0] != Format {
		return nil, ErrFormat
	}
	body, sum := b[:len(b)-8], b[len(b)-8:]
	n, width := int(binary.LittleEndian.Uint16(b[1:]))+1, 1
	if n > 256 {
		width = 2
	}
	if len(b) != around+n*width || binary.LittleEndian.Uint64(sum) != seal(k, body) {
		return nil, ErrFormat
	}
	order := make([]int, n)
	for i := range order {
		if width == 1 {
			order[i] = int(body[3+i])
		} else {
			order[i] = int(binary.LittleEndian.Uint16(body[3+2*i:]))
		}
	}
	if !Valid(order) {
		return nil, ErrFormat
	}
	return order, nil
}

// seal is the checksum of an encoded order at a place.
func seal(k Key, body []byte) uint64 { return xxh3.HashSeed(body, xxh3.Hash(k[:])) }
