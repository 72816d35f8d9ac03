package model

import (
	"fmt"
	"os"
	"path/filepath"
)

// Dir returns the folder of the models: the environment's RAGPILOT_MODELS, or ragpilot/models in the user's cache folder.
// It need not exist.
func Dir() (string, error) {
	if dir := os.Getenv("RAGPILOT_MODELS"); dir != "" {
		return dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("model: no folder for models, set RAGPILOT_MODELS: %w", err)
	}
	return filepath.Join(cache, "ragpilot", "models"), nil
}

// Find returns the path of a model that has been pulled. It looks at the file's length, not at its content, which was
// checked when it was put there.
func Find(name string) (path string, ok bool) {
	m, err := lookup(name)
	if err != nil {
		return "", false
	}
	dir, err := Dir()
	if err != nil {
		return "", false
	}
	return m.find(dir)
}

func (m Info) find(dir string) (string, bool) {
	path := filepath.Join(dir, m.File)
	info, err := os.Stat(path)
	return path, err == nil && info.Mode().IsRegular() && info.Size() == m.Size
}
