package repeat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
)

// Block is a row of whole lines of a text.
type Block struct {
	Lines int    // at least 1: an empty text is one empty line
	Hash  string // 20 hexadecimal digits; equal for blocks that differ in line numbers, outer white space and [WithoutIDs] only
}

// Blocks cuts a text into blocks; together they are all of its lines, in order. modulus is about how many lines a
// block has beyond the least number; 0 and less mean [DefaultModulus].
func Blocks(text string, modulus int) []Block {
	var blocks []Block
	b := body{raw: text, to: len(text), marked: hasExternal(text)}
	for p := range b.pieces(modulus) {
		sum := sha256.Sum256([]byte(unnumbered(trimmed(b.compared(p.from, p.to)))))
		blocks = append(blocks, Block{Lines: p.lines, Hash: hex.EncodeToString(sum[:10])})
	}
	return blocks
}

// Replaced is what became of the texts of one body.
type Replaced struct {
	Result
	Texts []string
}

// Replace shortens the texts of one body, in the order of the prompt.
func Replace(texts []Text, modulus int) Replaced {
	r := Replaced{Texts: make([]string, len(texts))}
	var m Memory
	for i, t := range texts {
		r.Texts[i], _ = m.Shorten(context.Background(), t, modulus, &r.Result) // the only error is the context's
	}
	return r
}
