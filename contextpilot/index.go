package contextpilot

import (
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
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

// identified is a block with its names.
type identified struct {
	id, label string
	key       Key
	content   content
	mark      content // equal marks are the same block for de-duplication
}

// identify gives every block its identity, in the array of ids; the result is indexed like blocks.
func identify(ids []identified, blocks []Block, dedup Dedup) []identified {
	ids = slices.Grow(ids[:0], len(blocks))[:len(blocks)]
	for i, b := range blocks {
		c := contentOf(b.Text)
		id := b.ID
		label := labelOf(id, c)
		if id == "" {
			id = label
		}
		ids[i] = identified{id: id, label: label, key: keyOf(label, c), content: c, mark: markOf(label, b.Text, c, dedup)}
	}
	return ids
}

// markOf returns the mark of a block that is seen under a label.
func markOf(label, text string, c content, dedup Dedup) content {
	if dedup != DedupContent || text == "" { // without a text only an ID is known
		return xxh3.HashString128Seed(label, c.Lo^c.Hi)
	}
	return c
}

// index gives blocks their identity, leaves out repeats, and finds out what stands in front of them.
func (p *Pilot) index(d *draft, req *Request) error {
	d.ids = identify(d.ids, d.plan.req.Blocks, p.cfg.Dedup)
	d.tokens = slices.Grow(d.tokens[:0], len(d.ids))[:len(d.ids)]
	clear(d.tokens)
	for i, b := range d.plan.req.Blocks {
		n := b.Tokens
		if n <= 0 {
			n = p.cfg.Tokenizer.Count(b.Text)
		}
		d.tokens[i] = tokenCount(n)
	}
	d.closeWith(req.Query, p.cfg.Tokenizer.Count)
	d.look(req.Prior, p)
	d.place = d.place[:0]
	repeated := d.repeated()
	for i := range d.plan.req.Blocks {
		if j := repeated(i); j >= 0 {
			d.plan.LeftOut = append(d.plan.LeftOut, LeftOut{Index: i, Reason: Duplicate, Same: j})
			continue
		}
		d.place = append(d.place, i)
	}
	return nil
}

// unknown puts a step of the request's own in front of a draft whose history could not be looked at: nothing is shared
// behind it. Later turns may refer to what it shows.
func (d *draft) unknown(req *Request) {
	if d.fits = false; len(req.Prior) > 0 {
		d.start = append(d.start[:0], tree.Elem{Key: ownKey(d.plan.RequestID)})
		d.visible = visibleIn(req.Prior)
	}
}
