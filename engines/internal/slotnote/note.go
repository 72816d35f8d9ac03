// Package slotnote describes slot files of llama-server that engines/local writes and engines/llamacpp has restored: a note is a file of
// JSON beside each, with its checksum and the tokens that requests must repeat.
package slotnote

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ragpilot/ragpilot/internal/base/durable"
)

// Ending is that of a note's name, behind the name of its file.
const Ending = ".json"

// Format is the version of notes that are written.
const Format = 1

// maxNote bounds a note: a million tokens have fewer bytes.
const maxNote = 16 << 20

// ErrDamaged: a file, or its note, is not what was written.
var ErrDamaged = errors.New("damaged, or not a slot file of ragpilot compress")

// Note is what is known of a slot file.
type Note struct {
	Format int    `json:"format"`
	Model  string `json:"model"` // its name, for people
	// ModelFile is the SHA-256 of the GGUF file, ModelBytes its length.
	ModelFile  string `json:"model_file"`
	ModelBytes int64  `json:"model_bytes"`
	Task       string `json:"task"`
	// Parallel is how many slots the server must have.
	Parallel int    `json:"parallel"`
	Type     string `json:"type"`  // of keys and values: "f16" or "f32"
	Bytes    int64  `json:"bytes"` // of the slot file
	Sum      string `json:"sum"`   // its SHA-256
	// Tokens stand for the context at the beginning of each prompt, Rest is the text behind them that is not compressed.
	Tokens []int32 `json:"tokens"`
	Rest   []int32 `json:"rest"`
	Check  string  `json:"check"` // SHA-256 of the note without this member
}

func (n Note) check() string {
	n.Check = ""
	data, err := json.Marshal(n)
	if err != nil {
		panic(err) // it has only numbers and strings
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Write writes the note of a file. Only the user may read it.
func Write(file string, n Note) error {
	n.Format = Format
	n.Check = n.check()
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return durable.WritePath(filepath.Clean(file)+Ending, append(data, '\n'))
}

// Read reads the note of a file.
func Read(file string) (Note, error) {
	var n Note
	r, err := os.Open(file + Ending)
	if err != nil {
		return n, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxNote+1))
	if err != nil {
		return n, err
	}
	if len(data) > maxNote || json.Unmarshal(data, &n) != nil {
		return n, fmt.Errorf("%s: %w", file+Ending, ErrDamaged)
	}
	if n.Format != Format {
		return n, fmt.Errorf("%s: format %d: want %d", file+Ending, n.Format, Format)
	}
	if n.Check != n.check() || len(n.Tokens) == 0 || n.Parallel < 1 {
		return n, fmt.Errorf("%s: %w", file+Ending, ErrDamaged)
	}
	return n, nil
}

// Sum returns the length and SHA-256 of a file.
func Sum(file string) (size int64, sum string, err error) {
	r, err := os.Open(file)
	if err != nil {
		return 0, "", err
	}
	defer r.Close()
	return SumOf(r)
}

// SumOf returns how many bytes r has, and their SHA-256.
func SumOf(r io.Reader) (size int64, sum string, err error) {
	h := sha256.New()
	size, err = io.Copy(h, r)
	return size, hex.EncodeToString(h.Sum(nil)), err
}

// Whole compares a file with its note.
func (n Note) Whole(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Size() != n.Bytes {
		return fmt.Errorf("%s: %d bytes, its note says %d: %w", file, info.Size(), n.Bytes, ErrDamaged)
	}
	if _, sum, err := Sum(file); err != nil {
		return err
	} else if sum != n.Sum {
		return fmt.Errorf("%s: its checksum is another one: %w", file, ErrDamaged)
	}
	return nil
}
