package recall_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/embed"
)

// kept is an embedder that keeps its vectors in a file: a small model takes minutes for some thousand texts.
type kept struct {
	inner embed.Embedder
	path  string

	mu      sync.Mutex
	vectors map[[sha256.Size]byte][]float32 // guarded by mu
}

// record is one vector of the file.
type record struct {
	Key    [sha256.Size]byte
	Length uint32
}

// keep returns an embedder over what the file has; the file need not exist.
func keep(t *testing.T, inner embed.Embedder, path string) *kept {
	t.Helper()
	k := &kept{inner: inner, path: path, vectors: map[[sha256.Size]byte][]float32{}}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for r := bytes.NewReader(data); r.Len() > 0; {
		var head record
		err := binary.Read(r, binary.LittleEndian, &head)
		v := make([]float32, min(head.Length, 1<<16))
		if err = errors.Join(err, binary.Read(r, binary.LittleEndian, v)); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		k.vectors[head.Key] = v
	}
	return k
}

func (k *kept) key(text string) [sha256.Size]byte {
	return sha256.Sum256([]byte(embed.NameOf(k.inner) + "\x00" + text))
}

// EmbedDocuments asks for the texts that are not in the file, and writes their vectors to it some texts at a time.
func (k *kept) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var missing []string
	for _, text := range texts {
		if _, ok := k.vectors[k.key(text)]; !ok {
			missing = append(missing, text)
		}
	}
	for part := range slices.Chunk(missing, 64) {
		vectors, err := k.inner.EmbedDocuments(ctx, part)
		if err != nil {
			return nil, err
		}
		if err := k.write(part, vectors); err != nil {
			return nil, err
		}
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = k.vectors[k.key(text)]
	}
	return out, nil
}

func (k *kept) write(texts []string, vectors [][]float32) error {
	var b bytes.Buffer
	for i, text := range texts {
		k.vectors[k.key(text)] = vectors[i]
		_ = binary.Write(&b, binary.LittleEndian, record{k.key(text), uint32(len(vectors[i]))})
		_ = binary.Write(&b, binary.LittleEndian, vectors[i])
	}
	f, err := os.OpenFile(k.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	return errors.Join(err, f.Close())
}

// EmbedQuery is for models that embed questions as they do documents.
func (k *kept) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vectors, err := k.EmbedDocuments(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}
