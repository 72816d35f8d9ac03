package contextfile

import (
	"encoding/binary"
	"hash/crc32"
)

// Repair writes the sum of a file's header into it, if there is room.
func Repair(data []byte) []byte {
	if len(data) < len(magic)+4 {
		return data
	}
	end := len(magic) + 4 + int(binary.LittleEndian.Uint32(data[len(magic):]))
	if end+sumSize <= len(data) {
		binary.LittleEndian.PutUint32(data[end:], crc32.Checksum(data[:end], castagnoli))
	}
	return data
}
