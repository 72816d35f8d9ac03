package local

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/ragpilot/ragpilot/engines/internal/slotnote"
	"github.com/ragpilot/ragpilot/engines/local/internal/contextfile"
	"github.com/ragpilot/ragpilot/engines/local/internal/kvfile"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// SlotFile is what [WriteSlotFile] does. Model, Context and Out must be set; other zero values stand for the defaults.
type SlotFile struct {
	// Model is the path of the GGUF file that Context was computed with. The server must have the same file.
	Model string
	// Context is a file of [Compress].
	Context string
	// Out is the file to be written, in the folder of the server's --slot-save-path. A note is written beside it, under the same
	// name with .json behind it. Both hold the documents in another form: only the user may read them.
	Out string
	// Type is that of the server's cache: "f16", the default, or "f32" (-ctk f32 -ctv f32).
	Type string
	// Parallel is the server's --parallel, which the file depends on; 0: 1.
	Parallel int
}

// WrittenSlot is what WriteSlotFile has written.
type WrittenSlot struct {
	File   string
	Tokens int // that requests have in front, and that the server finds in its cache
	Bytes  int64
}

// WriteSlotFile writes a compressed context as a slot file of llama-server, which package llamacpp has restored and asks. It is for
// llama.cpp's release b11434 and others with version 4 of the format, with flash attention on, as it is by default.
func WriteSlotFile(s SlotFile) (WrittenSlot, error) {
	if err := s.Check(); err != nil {
		return WrittenSlot{}, err
	}
	return s.write()
}

// Check returns the error that WriteSlotFile would return before it reads Context, which may not be there yet.
func (s SlotFile) Check() error {
	if !slices.Contains([]string{"", "f16", "f32"}, s.Type) {
		return fmt.Errorf("slot file: Type: type %q: want f16 or f32", s.Type)
	}
	if s.Parallel < 0 || s.Parallel > maxParallel {
		return fmt.Errorf("slot file: Parallel %d: want 1 to %d", s.Parallel, maxParallel)
	}
	info, err := os.Stat(s.Model)
	if err != nil {
		return fmt.Errorf("slot file: Model: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("slot file: Model %s: llama-server reads a GGUF file", s.Model)
	}
	// What this package has not written is not overwritten.
	if _, err := os.Stat(s.Out); err == nil {
		if _, err := slotnote.Read(s.Out); err != nil {
			return fmt.Errorf("slot file: Out: %s is there, and not with a note of its own: %w", s.Out, err)
		}
	} else if _, err := os.Stat(filepath.Dir(s.Out)); err != nil {
		return fmt.Errorf("slot file: Out: %w", err)
	}
	return nil
}

// maxParallel is the most sequences that llama.cpp has.
const maxParallel = 256

func (s SlotFile) write() (w WrittenSlot, err error) {
	s.Type, s.Parallel = cmp.Or(s.Type, "f16"), cmp.Or(s.Parallel, 1)
	format, err := kvfile.FormatByName(s.Type)
	if err != nil {
		return w, fmt.Errorf("slot file: Type: %w", err)
	}
	file, err := weights.Open(s.Model)
	if err != nil {
		return w, fmt.Errorf("slot file: Model: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	model, err := llama.New(file, gpu.CPU{}) // its memory is the program's
	if err != nil {
		return w, fmt.Errorf("slot file: Model %s: %w", s.Model, err)
	}
	context, err := contextfile.Open(s.Context)
	if err == nil {
		err = context.Fits(file.Identity(), context.Kernel, model) // the server computes with kernels of its own, whatever these were
	}
	if err != nil {
		return w, fmt.Errorf("slot file: Context: %w", err)
	}
	pages, err := context.Load(model)
	if err != nil {
		return w, fmt.Errorf("slot file: Context: %w", err)
	}
	heads := model.Shape()
	slot := slot{
		format: format, streams: s.Parallel, layers: model.Layers, width: heads.KV * heads.Dim,
		tokens: placeholders(file, context.Hash, context.Slots),
		row: func(row []float32, layer, cell int, values bool) {
			page, at := model.Page(pages[cell/llama.PageTokens].Host, layer), cell%llama.PageTokens
			for head := range heads.KV {
				page.Get(heads, head, at, row[head*heads.Dim:][:heads.Dim], values)
			}
		},
	}
	if err := writePrivate(s.Out, slot); err != nil {
		return w, fmt.Errorf("slot file: Out: %w", err)
	}
	note := slotnote.Note{Model: file.Name, Task: context.Task, Parallel: s.Parallel, Type: s.Type, Tokens: slot.tokens, Rest: context.Rest}
	if note.ModelBytes, note.ModelFile, err = slotnote.Sum(s.Model); err != nil {
		return w, fmt.Errorf("slot file: Model: %w", err)
	}
	if note.Bytes, note.Sum, err = slotnote.Sum(s.Out); err == nil {
		err = slotnote.Write(s.Out, note)
	}
	if err != nil {
		return w, fmt.Errorf("slot file: Out: %w", err)
	}
	return WrittenSlot{File: s.Out, Tokens: len(slot.tokens), Bytes: note.Bytes}, nil
}

// placeholders are as many ordinary tokens as a context has slots. They depend on all of the context, so that the server takes no context
// for another one, or for a text.
func placeholders(file *weights.Model, hash [sha256.Size]byte, n int) []int32 {
	tokens := make([]int32, 0, n)
	for i := uint64(0); len(tokens) < n; i++ {
		sum := sha256.Sum256(binary.LittleEndian.AppendUint64(hash[:], i))
		id := int32(binary.LittleEndian.Uint64(sum[:]) % uint64(file.Vocab))
		if !file.Tokenizer.Special(id) {
			tokens = append(tokens, id)
		}
	}
	return tokens
}

// writePrivate writes a file, which is there with all that it has or not at all. An earlier note goes first: it is not the new file's.
func writePrivate(path string, slot slot) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	if err := errors.Join(slot.write(temp), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Remove(path + slotnote.Ending); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// slot is what a slot file has.
type slot struct {
	format  kvfile.Format // F32 (-ctk f32 -ctv f32) or F16, whose numbers are ggml's
	streams int           // the caches of the server: one for each slot, with --parallel
	layers  int
	width   int     // numbers in a row of keys, and in one of values
	tokens  []int32 // one for each cell, which stands at the same position
	// row writes a cell's keys, or values, in a layer.
	row func(row []float32, layer, cell int, values bool)
}

// The format: llama_state_seq_save_file of llama.cpp, in version 4 (release b11434), which POST /slots/{id}?action=restore reads.
//
// All numbers are little-endian. A file is a magic, a version, the number of tokens and the tokens; the number of the cache's streams,
// and for each its number of cells; of the one stream that has any, each cell's position and sequence; whether values lie transposed,
// the number of layers, and the dimensions of a rotation that only quantized caches have; for each layer the type of keys, the size of a
// row, and a row for each cell, head after head, with keys as they are behind their rotary embedding; and the same for values.
const (
	slotMagic   = 0x67677371 // "ggsq"
	slotVersion = 4
)

func (s slot) write(to io.Writer) error {
	w := bufio.NewWriterSize(to, 1<<16)
	put := func(numbers ...uint32) {
		for _, n := range numbers {
			_, _ = w.Write(binary.LittleEndian.AppendUint32(nil, n)) // Flush returns the error
		}
	}
	n := uint32(len(s.tokens))
	put(slotMagic, slotVersion, n)
	for _, t := range s.tokens {
		put(uint32(t))
	}
	put(uint32(s.streams), n)
	for i := range n {
		put(i, 1, 0) // its position, and one sequence, whose number is not looked at
	}
	put(0, uint32(s.layers), 0, 0)
	row := make([]float32, s.width)
	data := make([]byte, map[kvfile.Format]int{kvfile.F32: 4, kvfile.F16: 2}[s.format]*s.width)
	for _, values := range []bool{false, true} {
		for layer := range s.layers {
			put(uint32(s.format), uint32(len(data)), 0)
			for cell := range s.tokens {
				s.row(row, layer, cell, values)
				if err := s.format.Encode(data, kvfile.Shape{}, row); err != nil {
					return fmt.Errorf("%w: want f32", err)
				}
				_, _ = w.Write(data)
			}
		}
	}
	put(make([]uint32, s.streams-1)...) // the other streams are empty
	return w.Flush()
}
