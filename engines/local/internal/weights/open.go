package weights

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ragpilot/ragpilot/internal/nn/mmap"
)

// Open loads a model from a GGUF file, whose name may be anything. It costs what the vocabulary costs; weights are read when
// they are used.
//
// The file is mapped read-only into memory where the system can do it (Linux, macOS, the BSDs) and read otherwise. Who
// shortens a mapped file while the model is in use makes the process fail with a bus error, as with every mapped
// file: replace model files by renaming, never in place.
func Open(path string) (*Model, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("weights: %s: it is a folder; want a GGUF file", path)
	}
	m, err := openGGUF(path)
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
