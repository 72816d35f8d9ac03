package minilm

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/internal/nn/mmap"
)

// MaxTokens is how much of a text is read, in tokens, [CLS] and [SEP] included.
const MaxTokens = 256

// Model is a sentence model in memory. It is safe for concurrent use: all calls together use as many cores as the program
// had (GOMAXPROCS) when the model was opened. Questions go before documents that wait, and
// long documents stop for them. It keeps no goroutine between calls and holds no file open.
type Model struct {
	config    config
	tokenizer *tokenizer
	weights   *weights
	limit     int // tokens of a text
	cores     *cores
	free      chan *scratch
}

var (
	_ embed.Embedder = (*Model)(nil)
	_ embed.Named    = (*Model)(nil)
)

// Open reads a model from a folder, as [Pull] makes it: config.json, tokenizer.json and model.safetensors. The last is mapped,
// and must not be changed while the model is used: 42 MB of it are in memory, which processes share; of the other half a text
// needs a few rows. Beside it the model takes 3 MB. Any BERT encoder with an uncased WordPiece tokenizer, 32-bit weights and
// mean pooling will do; for others an error names the file, the field and its value.
func Open(dir string) (*Model, error) {
	m, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("minilm: open: %w", err)
	}
	return m, nil
}

func open(dir string) (*Model, error) {
	m := &Model{}
	data, err := mmap.ReadFile(filepath.Join(dir, configFile), 1<<20)
	if err != nil {
		return nil, err
	}
	if m.config, err = parseConfig(data); err != nil {
		return nil, fmt.Errorf("%s: %w", configFile, err)
	}
	if data, err = mmap.ReadFile(filepath.Join(dir, tokenizerFileName), maxTokenizerFile); err != nil {
		return nil, err
	}
	if m.tokenizer, err = parseTokenizer(data, m.config.Vocabulary); err != nil {
		return nil, fmt.Errorf("%s: %w", tokenizerFileName, err)
	}
	m.limit = min(MaxTokens, m.config.Positions)
	if m.weights, err = loadWeights(filepath.Join(dir, weightsFile), m.config, m.limit); err != nil {
		return nil, fmt.Errorf("%s: %w", weightsFile, err)
	}
	n := runtime.GOMAXPROCS(0)
	m.cores, m.free = newCores(n), make(chan *scratch, n)
	return m, nil
}

// Name is what stores record of the vectors.
func (m *Model) Name() string {
	return fmt.Sprintf("all-minilm-l%d-v2-%d", m.config.Layers, m.config.Hidden)
}

// Dimensions is the length of the vectors: 384.
func (m *Model) Dimensions() int { return m.config.Hidden }

// EmbedDocuments returns a vector of length 1 for each text, in their order. A text's vector depends on that text alone,
// bit for bit. It fails only if ctx ends, with its cause, and then within one layer of a batch, some tens of milliseconds.
func (m *Model) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := m.embed(ctx, texts, false)
	if err != nil {
		return nil, fmt.Errorf("minilm: %w", err)
	}
	return vectors, nil
}

// EmbedQuery returns the vector of a question, which is computed before documents that wait. The model embeds questions as it
// does documents.
func (m *Model) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vectors, err := m.embed(ctx, []string{text}, true)
	if err != nil {
		return nil, fmt.Errorf("minilm: %w", err)
	}
	return vectors[0], nil
}

// Tokens returns how many tokens of a text are read, [CLS] and [SEP] included. If it is [MaxTokens], the text may have more.
func (m *Model) Tokens(text string) int { return len(m.tokenizer.encode(text, m.limit)) }
