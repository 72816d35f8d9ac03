package sim

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// key names a full block: the XXH3-128 hash of the key of the block before it and its own tokens. Equal keys mean
// equal text from the start of the prompt.
type key = xxh3.Uint128

// chain cuts a growing sequence of tokens into blocks. Tokens enter the hash as their text, each with a space behind it;
// no token contains a space, so this is as unambiguous as numbering them, and needs no table of all tokens seen.
type chain struct {
	blockTokens int
	tokens      int   // so far
	keys        []key // of the full blocks so far
	buf         []byte
}

// parentBytes is the room in front of buf for the key of the block before; all zero for the first block.
const parentBytes = 16

func (c *chain) reset(blockTokens int) {
	c.blockTokens, c.tokens, c.keys = blockTokens, 0, c.keys[:0]
	c.buf = append(c.buf[:0], make([]byte, parentBytes)...)
}

func (c *chain) add(text string) {
	for _, piece := range tokens.Pieces(text) {
		c.buf = append(append(c.buf, piece...), ' ')
		c.tokens++
		if c.tokens%c.blockTokens == 0 {
			k := xxh3.Hash128(c.buf)
			c.keys = append(c.keys, k)
			binary.LittleEndian.PutUint64(c.buf, k.Lo)
			binary.LittleEndian.PutUint64(c.buf[8:], k.Hi)
			c.buf = c.buf[:parentBytes]
		}
	}
}
