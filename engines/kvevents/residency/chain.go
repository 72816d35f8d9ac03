package residency

import (
	"encoding/binary"

	"github.com/tinylib/msgp/msgp"
	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// Key is what a block depends on besides its tokens. Prompts with different Keys share no blocks.
type Key struct {
	// LoRA is the adapter's name; for engines that send only a number (vLLM before 0.14), that number in decimal.
	LoRA string
	// Salt is the request's cache_salt.
	Salt string
}

// chain names a block by its tokens, its extra keys and the chain of the block before it: 128 bits of XXH3, seeded
// at random for each index. Equal chains mean equal prompts up to and with the block: two of a billion blocks are
// confused with a probability of 2^-69, and without the seed no tokens can be made that are.
type chain struct{ hi, lo uint64 }

// geometry is how an engine cuts prompts. size 0: not known yet.
type geometry struct {
	size   int
	bigram bool
}

// blocks returns the number of full blocks of a prompt.
func (g geometry) blocks(tokens int) int {
	if g.bigram {
		tokens--
	}
	return max(tokens, 0) / g.size
}

// block returns the tokens of block i, as [kvevents.Event.Block] does.
func (g geometry) block(tokens []int, i int) []int {
	end := (i + 1) * g.size
	if g.bigram {
		end++
	}
	return tokens[i*g.size : end]
}

// Elements of extra keys, by what is known of them.
const (
	loraElement = 'l'
	textElement = 's'
	rawElement  = 'r'
)

// chainer computes chains. It keeps a buffer and is not for use by two goroutines at a time.
type chainer struct {
	seed uint64
	buf  []byte
}

// begin starts a block: what stands before it, and its tokens, in an encoding that no other block has.
func (c *chainer) begin(tokens []int, bigram bool) {
	head := uint64(len(tokens)) << 1
	if bigram {
		head |= 1
	}
	b := append(c.buf[:0], make([]byte, 16)...) // room for the parent
	b = binary.LittleEndian.AppendUint64(b, head)
	for _, t := range tokens {
		if uint64(t) < 1<<32-1 {
			b = binary.LittleEndian.AppendUint32(b, uint32(t))
		} else {
			b = binary.LittleEndian.AppendUint32(b, 1<<32-1)
			b = binary.LittleEndian.AppendUint64(b, uint64(t))
		}
	}
	c.buf = b
}

func (c *chainer) element(kind byte, v []byte) {
	c.buf = append(c.buf, kind)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(len(v)))
	c.buf = append(c.buf, v...)
}

func (c *chainer) text(kind byte, s string) {
	if s != "" {
		c.buf = append(c.buf, kind)
		c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(len(s)))
		c.buf = append(c.buf, s...)
	}
}

// content returns what was begun, to be given to after once the parent is known.
func (c *chainer) content() []byte { return c.buf }

// after returns the chain of the block with this content that follows parent.
func (c *chainer) after(parent chain, content []byte) chain {
	binary.LittleEndian.PutUint64(content, parent.hi)
	binary.LittleEndian.PutUint64(content[8:], parent.lo)
	h := xxh3.Hash128Seed(content, c.seed)
	return chain{h.Hi, h.Lo}
}

// prompt appends the chains of a prompt's full blocks from block number from on, until there are limit of them.
func (c *chainer) prompt(to []chain, g geometry, parent chain, tokens []int, extra Key, from, limit int) []chain {
	for i := from; i < min(g.blocks(len(tokens)), from+limit); i++ {
		c.begin(g.block(tokens, i), g.bigram)
		c.text(loraElement, extra.LoRA)
		if i == 0 {
			c.text(textElement, extra.Salt)
		}
		parent = c.after(parent, c.content())
		to = append(to, parent)
	}
	return to
}

// stored begins block i of an event; first says that it stands at the prompt's beginning.
func (c *chainer) stored(ev *kvevents.Event, i int, first bool) {
	c.begin(ev.Block(i), ev.Bigram)
	if i < len(ev.Extra) && ev.Extra[i] != nil {
		if n, rest, err := msgp.ReadArrayHeaderBytes(ev.Extra[i]); err == nil && n > 0 {
			c.elements(rest, ev.LoRA)
			return
		}
	}
	c.text(loraElement, ev.LoRA)
	if first && len(ev.Salt) > 0 {
		c.element(textElement, ev.Salt)
	}
}

// elements appends vLLM's extra keys: the adapter's name, what stands for images, the salt.
func (c *chainer) elements(b []byte, lora string) {
	for len(b) > 0 {
		rest, err := msgp.Skip(b)
		if err != nil {
			rest = nil
		}
		one := b[:len(b)-len(rest)]
		if s, _, err := msgp.ReadStringZC(one); err != nil {
			c.element(rawElement, one)
		} else if lora != "" && string(s) == lora {
			c.element(loraElement, s)
			lora = ""
		} else {
			c.element(textElement, s)
		}
		b = rest
	}
}
