package holdback

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// A piece is pieceBytes of text, some pieceTokens tokens. A chain names the first maxPieces of them, 256 KiB.
const (
	pieceBytes  = 128
	pieceTokens = pieceBytes / 4 // English text has about four bytes in a token
	maxPieces   = 2048
)

// Chain names the beginnings of a prompt, whose texts follow each other: element i is a hash of its first i+1 pieces and of kind, which
// is whatever else must be equal for two prompts to share keys and values, such as the model. Two chains have as many first elements
// in common as their prompts have pieces. What is left behind the last whole piece, or behind 256 KiB, is not named.
func Chain(kind string, texts ...string) []uint64 {
	n := 0
	for _, t := range texts {
		n += len(t)
	}
	chain := make([]uint64, 0, min(n/pieceBytes, maxPieces))
	var buf [8 + pieceBytes]byte
	binary.LittleEndian.PutUint64(buf[:], xxh3.HashString(kind))
	at := 8
	for _, t := range texts {
		for len(t) > 0 && len(chain) < maxPieces {
			took := copy(buf[at:], t)
			t = t[took:]
			if at += took; at < len(buf) {
				break
			}
			h := xxh3.Hash(buf[:])
			chain = append(chain, h)
			binary.LittleEndian.PutUint64(buf[:], h)
			at = 8
		}
	}
	return chain
}
