package weights

import (
	"fmt"
	"math"
	"slices"

	"github.com/ragpilot/ragpilot/engines/local/internal/bpe"
	"github.com/ragpilot/ragpilot/engines/local/internal/gguf"
)

// fromGGUF builds a model of a GGUF file's bytes.
func fromGGUF(data []byte) (*Model, error) {
	f, err := gguf.Parse(data)
	if err != nil {
		return nil, err
	}
	k := &keys{m: f.Metadata}
	m := &Model{BOS: -1, Tensors: make(map[string]Tensor, len(f.Tensors))}
	if m.Params, err = k.params(); err != nil { // before the tensors: those of another architecture may have three sizes
		return nil, err
	}
	for _, t := range f.Tensors {
		if m.Tensors[t.Name], err = matrix(t); err != nil {
			return nil, err
		}
	}
	if err := m.adopt(k); err != nil {
		return nil, err
	}
	if m.Tokenizer, err = bpe.FromGGUF(f.Metadata); err != nil {
		return nil, err
	}
	if m.Vocab == 0 {
		m.Vocab = m.Tensors[embedding].Rows
	}
	m.recognize(k.text("tokenizer.chat_template"))
	m.Name = k.text("general.name")
	return m, k.specials(m)
}

// matrix turns a tensor of at most two sizes into rows and columns.
func matrix(t gguf.Tensor) (Tensor, error) {
	rows := 1
	switch {
	case len(t.Dims) == 2:
		rows = t.Dims[1]
	case len(t.Dims) > 2 && slices.Max(t.Dims[2:]) == 1:
		rows = t.Dims[1]
	case len(t.Dims) > 2:
		return Tensor{}, fmt.Errorf("tensor %q: sizes %v, want at most two", t.Name, t.Dims)
	}
	return Tensor{Name: t.Name, Type: t.Type, Rows: rows, Cols: t.Dims[0], Data: t.Data}, nil
}

// keys looks up metadata and remembers what went wrong first.
type keys struct {
	m    map[string]gguf.Value
	arch string
	err  error
}

func (k *keys) fail(key, format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf("key %q: %s", key, fmt.Sprintf(format, args...))
	}
}

func (k *keys) text(key string) string {
	s, _ := k.m[key].Text()
	return s
}

// most bounds every count, so that sums and products of a few of them stay in range.
const most = 1 << 30

// count returns a number above zero of the architecture; missing is what it is if it is not there, -1: it must be.
func (k *keys) count(name string, missing int) int {
	key := k.arch + "." + name
	v, ok := k.m[key]
	if !ok {
		if missing < 0 {
			k.fail(key, "not there")
		}
		return missing
	}
	n, ok := v.Int()
	if !ok || n < 1 || n > most {
		k.fail(key, "%d (%v), want a number from 1 to %d", n, v.Kind, most)
		return 1
	}
	return int(n)
}

// number returns a finite number above zero of the architecture.
func (k *keys) number(name string, missing float64) float64 {
	key := k.arch + "." + name
	v, ok := k.m[key]
	if !ok {
		return missing
	}
	f, ok := v.Float()
	if !ok || !(f > 0) || f > math.MaxFloat32 {
		k.fail(key, "%v (%v), want a number above 0", f, v.Kind)
		return 1
	}
	return f
}

// params reads the numbers of the architecture.
func (k *keys) params() (Params, error) {
	k.arch = k.text("general.architecture")
	if err := supported(k.arch); err != nil {
		return Params{}, fmt.Errorf("key %q: %w", "general.architecture", err)
	}
	if parts := k.m["split.count"]; parts.Kind != 0 || parts.Len != 0 {
		if n, _ := parts.Int(); n > 1 {
			return Params{}, fmt.Errorf("key %q: %d: a model in several GGUF files is not read; merge them first", "split.count", n)
		}
	}
	p := Params{Architecture: k.arch, RopeInterleaved: k.arch == "llama"}
	p.Layers = k.count("block_count", -1)
	p.Hidden = k.count("embedding_length", -1)
	p.FFN = k.count("feed_forward_length", -1)
	p.Context = k.count("context_length", -1)
	p.Heads = k.count("attention.head_count", -1)
	p.KVHeads = k.count("attention.head_count_kv", p.Heads)
	p.HeadDim = k.count("attention.key_length", max(1, p.Hidden/max(1, p.Heads)))
	p.RopeBase = k.number("rope.freq_base", 10000)
	p.Eps = float32(k.number("attention.layer_norm_rms_epsilon", 1e-5))
	k.same("attention.value_length", p.HeadDim)
	k.same("rope.dimension_count", p.HeadDim)
	if n := k.count("expert_count", 0); n > 0 {
		k.fail(k.arch+".expert_count", "%d: mixtures of experts are not supported", n)
	}
	p.Vocab = k.count("vocab_size", 0)
	k.scaling(&p)
	return p, k.err
}

// same is an error if a number is there and another one.
func (k *keys) same(name string, want int) {
	if n := k.count(name, want); n != want {
		k.fail(k.arch+"."+name, "%d: only %d, the size of a head, is supported", n, want)
	}
}

// scaling reads how the rotary frequencies are scaled.
func (k *keys) scaling(p *Params) {
	key := k.arch + ".rope.scaling.type"
	switch kind := k.text(key); kind {
	case "", "none":
	case "linear":
		if p.HeadDim > maxHead {
			break // Check says so
		}
		p.RopeFactors = slices.Repeat([]float32{float32(k.number("rope.scaling.factor", 1))}, p.HeadDim/2)
	default:
		k.fail(key, "%q is not supported", kind)
	}
}

// ropeFreqs is the tensor of factors that Llama 3.1 and later have.
const ropeFreqs = "rope_freqs.weight"

// adopt takes from the tensors and keys what belongs to the parameters.
func (m *Model) adopt(k *keys) error {
	if t, ok := m.Tensors[ropeFreqs]; ok {
		if t.Rows != 1 || t.Cols != m.HeadDim/2 {
			return t.shapeError(1, m.HeadDim/2)
		}
		m.RopeFactors = t.Float32()
		delete(m.Tensors, ropeFreqs)
	}
	if window := k.count("attention.sliding_window", m.Context); window < m.Context {
		m.Warnings = append(m.Warnings, fmt.Sprintf("the context is cut from %d to the attention window of %d tokens", m.Context, window))
		m.Context = window
	}
	_, untied := m.Tensors[output]
	m.TiedOutput = !untied
	return k.err
}

// specials reads which ids begin and end texts.
func (k *keys) specials(m *Model) error {
	id := func(name string, missing int32) int32 {
		v, ok := k.m["tokenizer.ggml."+name]
		if !ok {
			return missing
		}
		n, ok := v.Int()
		if !ok || n < 0 || n >= int64(m.Vocab) {
			if n != math.MaxUint32 { // how some files say that there is none
				k.fail("tokenizer.ggml."+name, "%d with %d tokens", n, m.Vocab)
			}
			return -1
		}
		return int32(n)
	}
	bos, eos := int32(-1), int32(-1)
	if m.Tokenizer.SentencePiece() {
		bos, eos = 1, 2
	}
	m.BOS = id("bos_token_id", bos)
	add, given := k.m["tokenizer.ggml.add_bos_token"].Bool()
	// Files of Llama 3 and those with a vocabulary of SentencePiece may leave it out, and mean yes.
	meant := m.Tokenizer.SentencePiece() || m.Tokenizer.Splitter() == bpe.Llama3
	m.AddBOS = m.BOS >= 0 && (add || !given && meant)
	m.stop(id("eos_token_id", eos), id("eot_token_id", -1), id("eom_token_id", -1))
	return k.err
}
