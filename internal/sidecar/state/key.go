package state

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/ragpilot/ragpilot/internal/base/durable"
)

// keyFile has the key of the hashes that are shown. A plain hash of a short text could be guessed.
const keyFile = "hash.key"

// keySize is the length of the key in bytes.
const keySize = 32

// Key returns the key of a folder's hashes. The file is made when it is first asked for, readable by its owner alone; one that others can
// read, or of another length, is an error.
func Key(dir string) ([]byte, error) {
	path := filepath.Join(dir, keyFile)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, keySize)
		rand.Read(key)
		return key, durable.WritePath(path, key)
	}
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s: mode %#o: others can read the key of hashes: want 0600", keyFile, mode)
	}
	key, err := os.ReadFile(path)
	if err == nil && len(key) != keySize {
		err = fmt.Errorf("%s: %d bytes: want %d; remove it to have a new one", keyFile, len(key), keySize)
	}
	return key, err
}
