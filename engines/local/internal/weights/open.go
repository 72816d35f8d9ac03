package weights

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ragpilot/ragpilot/internal/nn/mmap"
)

// Open loads a model: a GGUF file (its name may be anything), or a folder with config.json, *.safetensors and
// tokenizer.json. It costs what the vocabulary costs; weights are read when they are used.
//
// The file is mapped read-only into memory where the system can do it (Linux, macOS, the BSDs) and read otherwise. Who
// shortens a mapped file while the model is in use makes the process fail with a bus error, as with every mapped
// file: replace model files by renaming, never in place.
func Open(path string) (*Model, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	load := openGGUF
	if info.IsDir() {
		load = openFolder
	}
	m, err := load(path)
	if err != nil {
		return nil, fmt.Errorf("weights: %s: %w", path, err)
	}
	if err := m.Check(); err != nil {
		m.Close()
		return nil, fmt.Errorf("weights: %s: %w", path, err)
	}
	if m.Name == "" {
		m.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	return m, nil
}

func openGGUF(path string) (*Model, error) {
	f, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := fromGGUF(f.Bytes())
	if err != nil {
		f.Close()
		return nil, err
	}
	m.close = f.Close
	return m, nil
}
