package trace

import (
	"errors"
	"fmt"
	"io"
	"iter"
)

// Block is one retrievable text.
type Block struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Blocks holds the texts that a trace names, in file order. The zero value is empty and ready. Once filled, it may be
// read by any number of goroutines.
type Blocks struct {
	list []Block
	at   map[string]int // index in list
}

// NewBlocks returns a Blocks that holds list; an ID that occurs twice is an error. The slice is copied.
func NewBlocks(list ...Block) (*Blocks, error) {
	var b Blocks
	for _, x := range list {
		if err := b.add(x); err != nil {
			return nil, err
		}
	}
	return &b, nil
}

// LoadBlocks reads a file of blocks; path may end in ".gz" or be "-".
func LoadBlocks(path string) (*Blocks, error) {
	l, err := openLines(path)
	if err != nil {
		return nil, err
	}
	b, err := readBlocks(l)
	return b, errors.Join(err, l.close())
}

// ReadBlocks reads blocks from r to its end. The name stands for the file in errors.
func ReadBlocks(r io.Reader, name string) (*Blocks, error) { return readBlocks(newLines(r, name)) }

func readBlocks(l *lines) (*Blocks, error) {
	var b Blocks
	lineOf := map[string]int{}
	for {
		x, err := nextObject(l, parseBlock)
		if errors.Is(err, io.EOF) {
			return &b, nil
		}
		if err != nil {
			return nil, err
		}
		if err := b.add(x); err != nil {
			return nil, l.fail(fmt.Errorf("%w, first on line %d", err, lineOf[x.ID]))
		}
		lineOf[x.ID] = l.n
	}
}

func parseBlock(m *members) Block { return Block{ID: m.name("block"), Text: m.text("text")} }

func (b *Blocks) add(x Block) error {
	if _, ok := b.at[x.ID]; ok {
		return fmt.Errorf("block %q occurs twice", x.ID)
	}
	if b.at == nil {
		b.at = make(map[string]int)
	}
	b.at[x.ID] = len(b.list)
	b.list = append(b.list, x)
	return nil
}

// Text returns the text of a block, and whether there is one of this ID.
func (b *Blocks) Text(id string) (string, bool) {
	i, ok := b.at[id]
	if !ok {
		return "", false
	}
	return b.list[i].Text, true
}

// Len returns the number of blocks.
func (b *Blocks) Len() int { return len(b.list) }

// All walks the blocks in file order.
func (b *Blocks) All() iter.Seq[Block] {
	return func(yield func(Block) bool) {
		for _, x := range b.list {
			if !yield(x) {
				return
			}
		}
	}
}
