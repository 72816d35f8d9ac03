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
		c.cut()
	}
}

// cut ends a block if it is full.
func (c *chain) cut() {
	if c.tokens%c.blockTokens != 0 {
		return
	}
	k := xxh3.Hash128(c.buf)
	c.keys = append(c.keys, k)
	binary.LittleEndian.PutUint64(c.buf, k.Lo)
	binary.LittleEndian.PutUint64(c.buf[8:], k.Hi)
	c.buf = c.buf[:parentBytes]
}

// Segment is a part of a prompt without text. Two prompts share it if its ID is the same and all segments before it are; of two lengths, as
// much as the shorter one has.
type Segment struct {
	ID     uint64
	Tokens int
}

// Prompt is a request without text, for [Server.SubmitPrompt].
type Prompt struct {
	ID       string
	Segments []Segment
	Answer   Segment
}

func (c *chain) addSegment(s Segment) {
	for at := 0; at < s.Tokens; {
		n := min(s.Tokens-at, c.blockTokens-c.tokens%c.blockTokens)
		c.buf = binary.LittleEndian.AppendUint64(c.buf, s.ID)
		c.buf = binary.LittleEndian.AppendUint64(c.buf, uint64(at))
		c.buf = binary.LittleEndian.AppendUint64(c.buf, uint64(n))
		c.tokens += n
		at += n
		c.cut()
	}
}
