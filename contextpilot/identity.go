package contextpilot

import (
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/prompt/markup"
)

// Key identifies a block for the index and for policies: a 64-bit hash over label, which stands for the ID, and Text, so that a
// block whose text has changed under its ID is another block. Two blocks with one Key would only mislead a prediction.
type Key uint64

// content stands for a text, whatever ID it comes under. Before a block is left out because its text is there already,
// the texts themselves are compared.
type content = xxh3.Uint128

func contentOf(text string) content { return xxh3.HashString128(text) }

// keyOf returns the key of a block by its label, which is in the prompt where its ID may not be.
func keyOf(label string, c content) Key {
	return Key(xxh3.HashStringSeed(label, c.Lo^c.Hi))
}

// labelSeed keeps apart an ID and a text of the same bytes.
const labelSeed = 0x6c6162656c

// labelOf returns the name under which the model sees a block and may cite it. It depends on the block alone.
// An ID is its own label if it is short and free of spaces and markup; otherwise a readable part of it is
// followed by '~' and a hash. '~' never occurs in an ID that is its own label, so the two cannot meet.
func labelOf(id string, c content) string {
	if id == "" {
		return "~" + hashHex(c)
	}
	if plainLabel(id) {
		return id
	}
	var b strings.Builder
	for _, r := range id {
		if b.Len() >= 24 {
			break
		}
		if r < utf8.RuneSelf && plainRune(r) {
			b.WriteRune(r)
		}
	}
	return b.String() + "~" + hashHex(xxh3.HashString128Seed(id, labelSeed))
}

func hashHex(c content) string {
	b := c.Bytes()
	return hex.EncodeToString(b[:8])
}

func plainLabel(id string) bool {
	if len(id) > markup.MaxLabel || !utf8.ValidString(id) {
		return false
	}
	for _, r := range id {
		if !plainRune(r) {
			return false
		}
	}
	return true
}

func plainRune(r rune) bool {
	if strings.ContainsRune("<>[]{}~\"'`&|\\", r) {
		return false
	}
	return unicode.IsPrint(r) && !unicode.IsSpace(r)
}
