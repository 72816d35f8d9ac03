package kvstore

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// Hash names a full page: it depends on all tokens of the sequence up to the page's last, and on the salt.
type Hash [sha256.Size]byte

// What is hashed begins with one of these, so that no salt looks like a page.
const (
	ofSalt byte = iota + 1
	ofPage
	ofPrefix
)

// root is what the first page's hash goes on from.
func root(salt string) Hash {
	if salt == "" {
		return Hash{}
	}
	return sha256.Sum256(append([]byte{ofSalt}, salt...))
}

// chain is the hash of a page that follows another.
func chain(parent Hash, tokens []int32) Hash {
	var data [1 + sha256.Size + 4*PageTokens]byte
	data[0] = ofPage
	copy(data[1:], parent[:])
	for i, t := range tokens {
		binary.LittleEndian.PutUint32(data[1+sha256.Size+4*i:], uint32(t))
	}
	return sha256.Sum256(data[:])
}

// event is the hash as events have it: as vLLM does, the first 64 bits.
func (h Hash) event() kvevents.Hash { return kvevents.Uint(binary.BigEndian.Uint64(h[:])) }
