package weights

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local/internal/bpe"
	"github.com/ragpilot/ragpilot/engines/local/internal/chattemplate"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// Tensor is a matrix of weights, or a vector. It is read-only.
type Tensor struct {
	// Name is the tensor's name as in GGUF files, for example "blk.0.attn_q.weight".
	Name string
	Type quant.Type
	// Rows and Cols are its shape: a vector has one row. A row is Cols weights that lie together; a matrix turns a
	// vector of Cols numbers into one of Rows.
	Rows, Cols int
	// Data are Rows * Type.Bytes(Cols) bytes, row after row. They lie in the mapped file until the model is closed, and
	// must not be written. Data of F32, F16 and BF16 begins at a multiple of its element's size; of other types anywhere.
	Data []byte
}

// Float32 returns the tensor's weights as float32, a copy.
func (t Tensor) Float32() []float32 {
	out := make([]float32, t.Rows*t.Cols)
	quant.Dequantize(t.Type, out, t.Data)
	return out
}

// Params are the numbers of an architecture. All counts are above zero, Hidden is not necessarily Heads*HeadDim, and
// Heads is a multiple of KVHeads.
type Params struct {
	// Architecture is "llama", "qwen2" or "qwen3".
	Architecture string
	// Layers, Hidden, Heads, KVHeads, HeadDim, FFN and Vocab are the shape; Context is the longest sequence in tokens
	// that the model was trained for.
	Layers, Hidden, Heads, KVHeads, HeadDim, FFN, Vocab, Context int
	// RopeBase is the base of the rotary frequencies: frequency j of HeadDim/2 is RopeBase^(-2j/HeadDim).
	RopeBase float64
	// RopeInterleaved: elements 2j and 2j+1 of a head rotate together; otherwise j with
	// j+HeadDim/2.
	RopeInterleaved bool
	// RopeFactors divide the frequencies, one each (HeadDim/2 numbers); nil: none.
	RopeFactors []float32
	// Eps is what the norms add to the mean of squares.
	Eps float32
	// TiedOutput: there is no tensor output.weight, and token_embd.weight takes its place.
	TiedOutput bool
}

// Model is a loaded model. Reading it is safe from several goroutines; Close must come after all of them.
type Model struct {
	Params
	// Name is the model's own name for itself, or the file's.
	Name string
	// Tensors are the weights by name.
	Tensors map[string]Tensor
	// Tokenizer turns text into the ids of rows of token_embd.weight.
	Tokenizer *bpe.Tokenizer
	// Template turns a chat into text.
	Template chattemplate.Template
	// BOS begins a text if AddBOS is set; -1: there is none.
	BOS    int32
	AddBOS bool
	// Stop are the ids after which an answer is over, sorted: the end of a text and the end of a turn.
	Stop []int32
	// Warnings are what was assumed, one sentence each: for example a chat template that is not known.
	Warnings []string

	close func() error
}

// Output is the matrix that turns the last hidden state into logits: output.weight, or token_embd.weight if TiedOutput.
func (m *Model) Output() Tensor {
	if m.TiedOutput {
		return m.Tensors["token_embd.weight"]
	}
	return m.Tensors["output.weight"]
}

// Identity is a hash of all that keys and values depend on besides tokens: the numbers of the architecture and all tensors. It reads
// the whole file.
func (m *Model) Identity() [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%+v\n", m.Params)
	for _, name := range slices.Sorted(maps.Keys(m.Tensors)) {
		t := m.Tensors[name]
		fmt.Fprintf(h, "%q %v %d %d\n", t.Name, t.Type, t.Rows, t.Cols)
		h.Write(t.Data)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Chat returns the tokens of a chat, as the model's template writes it, with the beginning of the assistant's next turn
// if answer is set. Nothing must be added in front. Names of special tokens that the vocabulary lacks are ordinary text.
func (m *Model) Chat(chat []engines.Message, answer bool) []int32 {
	return m.Tokens(m.Template.Render(chat, answer))
}

// Tokens returns the tokens of a rendered chat, or of a part of one.
func (m *Model) Tokens(pieces []chattemplate.Piece) []int32 {
	ids, _ := m.tokens(pieces, func(text string) []string { return []string{text} })
	return ids
}

// Cut, in the content of a message, is where [Model.ChatCut] cuts. It is no character of any text.
const Cut = "\xff"

// ChatCut does what Chat does with each part of a text between two cuts encoded by itself. It also returns how many tokens
// stand in front of each cut that the template has kept.
func (m *Model) ChatCut(chat []engines.Message, answer bool) (ids []int32, cuts []int) {
	return m.tokens(m.Template.Render(chat, answer), func(text string) []string { return strings.Split(text, Cut) })
}

func (m *Model) tokens(pieces []chattemplate.Piece, split func(string) []string) (ids []int32, cuts []int) {
	ids = make([]int32, 0, 16*len(pieces))
	text := ""
	flush := func() {
		for i, part := range split(text) {
			if i > 0 {
				cuts = append(cuts, len(ids))
			}
			ids = append(ids, m.Tokenizer.Encode(part, false)...)
		}
		text = ""
	}
	for _, p := range pieces {
		id, ok := m.Tokenizer.ID(p.Text)
		if !p.Special || !ok {
			text += p.Text
			continue
		}
		flush()
		ids = append(ids, id)
	}
	flush()
	return ids, cuts
}

// recognize sets the template of a Jinja program, and warns of what is assumed.
func (m *Model) recognize(jinja string) {
	var warning string
	if m.Template, warning = chattemplate.Recognize(jinja); warning != "" {
		m.Warnings = append(m.Warnings, warning)
	}
	const end = "</s>"
	_, ok := m.Tokenizer.ID(end)
	if f := m.Template.Family; !ok && (f == chattemplate.Zephyr || f == chattemplate.Mistral) {
		m.Warnings = append(m.Warnings, fmt.Sprintf("the chat template (%v) ends turns with %s, which the vocabulary has not", f, end))
	}
}

// Text returns the tokens of a text to continue: with BOS in front if the model wants it. Names of special
// tokens in the text are these tokens, as engines do it for completions.
func (m *Model) Text(text string) []int32 {
	ids := m.Tokenizer.Encode(text, true)
	if m.AddBOS && (len(ids) == 0 || ids[0] != m.BOS) {
		ids = append([]int32{m.BOS}, ids...)
	}
	return ids
}

// Close gives the mapped file back. The data of all tensors is gone after it. Closing twice is harmless.
func (m *Model) Close() error {
	if m.close == nil {
		return nil
	}
	closeFile := m.close
	m.close = nil
	return closeFile()
}

// enders are the names of tokens that end a turn or a text, in every family of models.
var enders = []string{"<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "</s>"}

// stop sets Stop to the ids (those above -1) and those of the usual names.
func (m *Model) stop(ids ...int32) {
	for _, name := range enders {
		if id, ok := m.Tokenizer.ID(name); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	m.Stop = slices.Compact(slices.DeleteFunc(ids, func(id int32) bool { return id < 0 || int(id) >= m.Vocab }))
}
