package kvfile

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A page's file is magic, identity (32 bytes), salt (32), page (32), length of what follows (4), the numbers, and CRC-32C (4) of all
// before it. The identity is a hash of model, kernel, format and shape.
const (
	magic    = "RPKVPG01"
	headSize = len(magic) + 3*32 + 4
	sumSize  = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged: a file is not a page, or not the one that its name says.
var ErrDamaged = errors.New("damaged page of keys and values")

// seal writes what stands around the numbers of a page's file.
func seal(file []byte, identity [32]byte, id ID) {
	head := append(file[:0], magic...)
	head = append(head, identity[:]...)
	head = append(head, id.Salt[:]...)
	head = append(head, id.Page[:]...)
	binary.LittleEndian.AppendUint32(head, uint32(len(file)-headSize-sumSize))
	binary.LittleEndian.PutUint32(file[len(file)-sumSize:], crc32.Checksum(file[:len(file)-sumSize], castagnoli))
}

// check reports whether a file is whole, and which page of what it is.
func check(file []byte) (identity [32]byte, id ID, ok bool) {
	if len(file) < headSize+sumSize || string(file[:len(magic)]) != magic {
		return identity, id, false
	}
	rest := file[len(magic):]
	copy(identity[:], rest)
	copy(id.Salt[:], rest[32:])
	copy(id.Page[:], rest[64:])
	body := len(file) - sumSize
	ok = binary.LittleEndian.Uint32(rest[96:]) == uint32(body-headSize) &&
		binary.LittleEndian.Uint32(file[body:]) == crc32.Checksum(file[:body], castagnoli)
	return identity, id, ok
}
