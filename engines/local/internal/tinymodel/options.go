package tinymodel

import "github.com/ragpilot/ragpilot/internal/nn/quant"

// Options describe a model. The zero value is a llama with 2 layers, hidden 64, 4 heads of 16, 2 of them for keys and
// values, FFN 128, context 512, tied output, F32.
type Options struct {
	// Architecture is "llama", "qwen2" or "qwen3"; empty: llama.
	Architecture string
	// Layers … FFN are the shape; 0: see above. Rows of matrices are Hidden, FFN and Heads*HeadDim long, which must be
	// multiples of the format's block.
	Layers, Hidden, Heads, KVHeads, HeadDim, FFN int
	// Context is the longest sequence in tokens.
	Context int
	// Type is the format of matrices; vectors are always F32. Matrices in formats that can only be read are blocks of
	// random bytes.
	Type quant.Type
	// Types are the formats of matrices by name, for example "blk.0.ffn_down.weight", that are not in Type.
	Types map[string]quant.Type
	// Untied adds a matrix output.weight.
	Untied bool
	// RopeFactors divide the rotary frequencies (HeadDim/2 numbers); nil: none.
	RopeFactors []float32
	// AddBOS has texts begin with the token BOS, which is <|im_start|>.
	AddBOS bool
	// Thinking has the chat template leave thoughts out of earlier answers, as Qwen 3's does.
	Thinking bool
	// SentencePiece gives the model a vocabulary of SentencePiece, learnt from this repository's documents, and a chat template as
	// TinyLlama has it. Which tokens begin and end texts, it leaves to be known: <s> and </s>.
	SentencePiece bool
	// Seed of the weights.
	Seed uint64
}

const (
	ropeBase = 10000
	eps      = 1e-5
)

// filled puts what is described above in place of zero values.
func (o Options) filled() Options {
	if o.Architecture == "" {
		o.Architecture = "llama"
	}
	for _, f := range []struct {
		field *int
		value int
	}{{&o.Layers, 2}, {&o.Hidden, 64}, {&o.Heads, 4}, {&o.KVHeads, 2}, {&o.HeadDim, 16}, {&o.FFN, 128}, {&o.Context, 512}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return o
}
