package sim_test

import (
	"strings"

	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// vocab numbers pieces with dense ids in order of appearance, from 0. The zero value is empty and ready.
type vocab struct {
	ids map[string]uint32
}

// id returns the id of piece, which is given the next free one when it is new.
func (v *vocab) id(piece string) uint32 {
	id, ok := v.ids[piece]
	if !ok {
		if v.ids == nil {
			v.ids = make(map[string]uint32)
		}
		id = uint32(len(v.ids))
		v.ids[strings.Clone(piece)] = id // a clone, so that the text around it can go
	}
	return id
}

// append appends the ids of the tokens of text to dst and returns the extended slice.
func (v *vocab) append(dst []uint32, text string) []uint32 {
	for _, piece := range tokens.Pieces(text) {
		dst = append(dst, v.id(piece))
	}
	return dst
}
