// Package contextfile keeps what was chosen of a corpus in a file.
//
// A file is magic, the length of the header (4 bytes), the header as JSON, its CRC-32C, and pages one after the other, each
// with a CRC-32C of its own. A page is the positions of its slots and, if the header says so, their profile, as [compress.Kept]
// has them, and the numbers, as [kvfile.Format] writes them. Keys are as they were computed: what a document has in a file does
// not depend on what stands before it.
package contextfile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/ragpilot/ragpilot/engines/local/internal/compress"
	"github.com/ragpilot/ragpilot/engines/local/internal/kvfile"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/internal/base/durable"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// Version is that of files that are written. Those of version 1, which have no profile, are read as well.
const Version = 2

const (
	magic     = "RPCONTXT"
	maxHeader = 16 << 20
	sumSize   = 4
)

// ErrDamaged: a file is not a context, or not all of one.
var ErrDamaged = errors.New("not a compressed context, or a damaged one")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Mode is how a corpus was computed.
type Mode string

// The modes.
const (
	Joint      Mode = "joint"       // all together, in parts only above a window
	ByDocument Mode = "by-document" // each document by itself behind the opening
)

// Header says what a file has.
type Header struct {
	Version    int     `json:"version"`
	Model      string  `json:"model"`    // its name, for people
	Identity   string  `json:"identity"` // of the model: weights.Model.Identity
	Kernel     string  `json:"kernel"`
	Layers     int     `json:"layers"`
	KV         int     `json:"kv_heads"`
	Dim        int     `json:"head_dim"`
	Format     string  `json:"format"`
	Mode       Mode    `json:"mode"`
	Scorer     string  `json:"scorer"`
	Task       string  `json:"task"`
	Notes      string  `json:"notes"` // "model", "given" or "none"
	NotesHash  string  `json:"notes_hash"`
	Tokens     int     `json:"tokens"` // of the corpus with its opening
	Slots      int     `json:"slots"`
	Profile    bool    `json:"profile"`     // pages have one
	NotesDrift float64 `json:"notes_drift"` // of notes from themselves: compress.Kept.Own
	Parts      []Part  `json:"parts"`
	Rest       []int32 `json:"rest"` // the corpus's last tokens, fewer than a page, which every request begins with
}

// Part is a run of slots that were computed together.
type Part struct {
	Key     string   `json:"key"` // a hash of all that the slots depend on
	Sources []Source `json:"sources"`
	Tokens  int      `json:"tokens"`
	Slots   int      `json:"slots"`
}

// Source is a document, or the piece of one that a part has.
type Source struct {
	Name   string `json:"name"`
	Hash   string `json:"hash"` // SHA-256 of its tokens
	Tokens int    `json:"tokens"`
}

func (h *Header) shape() kvfile.Shape { return kvfile.Shape{Layers: h.Layers, KV: h.KV, Dim: h.Dim} }

func (h *Header) positions() int { return h.Layers * h.KV * llama.PageTokens }

// most bounds each number of a header, so that products fit.
const most = 1 << 20

// check refuses headers that contradict themselves, and returns the size of a page.
func (h *Header) check() (size int, err error) {
	if h.Version < 1 || h.Version > Version {
		return 0, fmt.Errorf("version %d: want 1 to %d", h.Version, Version)
	}
	if h.Version == 1 && h.Profile {
		return 0, fmt.Errorf("%w: version 1 with a profile", ErrDamaged)
	}
	format, err := kvfile.FormatByName(h.Format)
	if err != nil {
		return 0, err
	}
	if min(h.Layers, h.KV, h.Dim) < 1 || max(h.Layers, h.KV, h.Dim) > 1<<14 || h.Layers*h.KV*h.Dim > 4*most {
		return 0, fmt.Errorf("%w: %d layers of %d heads of %d", ErrDamaged, h.Layers, h.KV, h.Dim)
	}
	sum := 0
	for i, p := range h.Parts {
		if p.Slots < 1 || p.Slots%llama.PageTokens != 0 || p.Slots > most*64 {
			return 0, fmt.Errorf("%w: part %d has %d slots", ErrDamaged, i, p.Slots)
		}
		sum += p.Slots
	}
	if sum != h.Slots || sum == 0 || len(h.Rest) >= llama.PageTokens {
		return 0, fmt.Errorf("%w: %d slots, its parts have %d; %d tokens behind them", ErrDamaged, h.Slots, sum, len(h.Rest))
	}
	return h.before() + format.Size(h.shape()), nil
}

// before is how many bytes a page has before its numbers.
func (h *Header) before() int {
	if h.Profile {
		return 5 * h.positions()
	}
	return 4 * h.positions()
}

// Encode writes what was kept as pages of a file.
func (h *Header) Encode(k *compress.Kept) ([][]byte, error) {
	format, err := kvfile.FormatByName(h.Format)
	if err != nil {
		return nil, err
	}
	if h.Profile != (k.Profile != nil) {
		return nil, fmt.Errorf("profile %t: what was kept says otherwise", h.Profile)
	}
	pages := make([][]byte, len(k.Pages))
	for i, page := range k.Pages {
		b := make([]byte, 0, h.before()+format.Size(h.shape())+sumSize)
		for _, p := range k.Positions[i] {
			b = binary.LittleEndian.AppendUint32(b, p)
		}
		if h.Profile {
			b = append(b, k.Profile[i]...)
		}
		at := len(b)
		b = b[:at+format.Size(h.shape())]
		if err := format.Encode(b[at:], h.shape(), page); err != nil {
			return nil, fmt.Errorf("format %s: %w", h.Format, err)
		}
		pages[i] = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	}
	return pages, nil
}

// Write writes a file of encoded pages: it is there with all of them or as it was before. Only the user may read it.
func Write(path string, h Header, pages [][]byte) error {
	h.Version = Version
	if _, err := h.check(); err != nil {
		return err
	}
	header, err := json.Marshal(h)
	if err != nil {
		return err
	}
	data := append([]byte(magic), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(data[len(magic):], uint32(len(header)))
	data = append(data, header...)
	data = binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
	for _, p := range pages {
		data = append(data, p...)
	}
	path = filepath.Clean(path)
	if err := durable.WritePath(path, data); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// File is an open context. It is all in memory.
type File struct {
	Header
	// Hash is of all of the file.
	Hash  [sha256.Size]byte
	Bytes int64
	pages [][]byte // with their sums
}

// Open reads a file, with every checksum. The error names it.
func Open(path string) (*File, error) {
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func open(path string) (*File, error) {
	r, err := os.Open(path)
	if err != nil {
		if e, ok := errors.AsType[*os.PathError](err); ok {
			err = e.Err // the path is named already
		}
		return nil, err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ErrDamaged
	}
	return Read(r, info.Size())
}

// Read reads a file of a size.
func Read(r io.Reader, size int64) (*File, error) {
	head := make([]byte, len(magic)+4)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:len(magic)]) != magic {
		return nil, ErrDamaged
	}
	n := int64(binary.LittleEndian.Uint32(head[len(magic):]))
	if n > maxHeader || n > size {
		return nil, ErrDamaged
	}
	header := make([]byte, n+sumSize)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, ErrDamaged
	}
	if !whole(head, header) {
		return nil, ErrDamaged
	}
	f := &File{Bytes: size}
	if err := json.Unmarshal(header[:n], &f.Header); err != nil {
		return nil, ErrDamaged
	}
	page, err := f.check()
	if err != nil {
		return nil, err
	}
	page += sumSize
	if rest := size - int64(len(head)+len(header)); rest/int64(page) != int64(f.Slots/llama.PageTokens) || rest%int64(page) != 0 {
		return nil, ErrDamaged
	}
	hash := sha256.New()
	hash.Write(head)
	hash.Write(header)
	for range f.Slots / llama.PageTokens {
		b := make([]byte, page)
		if _, err := io.ReadFull(r, b); err != nil || !whole(b) {
			return nil, ErrDamaged
		}
		hash.Write(b)
		f.pages = append(f.pages, b)
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return nil, ErrDamaged
	}
	f.Hash = [sha256.Size]byte(hash.Sum(nil))
	return f, nil
}

// whole reports whether bytes, in parts, end with their sum.
func whole(parts ...[]byte) bool {
	last, sum := parts[len(parts)-1], uint32(0)
	for _, p := range parts[:len(parts)-1] {
		sum = crc32.Update(sum, castagnoli, p)
	}
	body := len(last) - sumSize
	return binary.LittleEndian.Uint32(last[body:]) == crc32.Update(sum, castagnoli, last[:body])
}

// Fits refuses a file of another model or kernel.
func (f *File) Fits(identity [sha256.Size]byte, kernel string, m *llama.Model) error {
	if want := hex.EncodeToString(identity[:]); f.Identity != want {
		return fmt.Errorf("model %s (identity %.16s): this model's identity is %.16s", f.Model, f.Identity, want)
	}
	if f.Kernel != kernel {
		return fmt.Errorf("kernel %s: this process computes with %s; compress it again on this device, or choose the other one", f.Kernel, kernel)
	}
	if got, want := f.shape(), (kvfile.Shape{Layers: m.Layers, KV: m.KVHeads, Dim: m.HeadDim}); got != want {
		return fmt.Errorf("shape %+v: the model has %+v", got, want)
	}
	return nil
}

// Pages returns the encoded pages of a part.
func (f *File) Pages(part int) [][]byte {
	at := 0
	for _, p := range f.Parts[:part] {
		at += p.Slots / llama.PageTokens
	}
	return f.pages[at : at+f.Parts[part].Slots/llama.PageTokens]
}

// Load brings all pages to the model's device, with their slots at positions 0 and behind. The model must be one that the file fits.
func (f *File) Load(m *llama.Model) ([]gpu.Page, error) {
	format, err := kvfile.FormatByName(f.Format)
	if err != nil {
		return nil, err
	}
	worker, err := m.NewWorker(1)
	if err != nil {
		return nil, err
	}
	defer worker.Close()
	out, err := m.NewPages(len(f.pages))
	if err != nil {
		return nil, err
	}
	floats := make([]float32, f.shape().Floats())
	positions := make([]uint32, f.positions())
	for i, b := range f.pages {
		for j := range positions {
			positions[j] = binary.LittleEndian.Uint32(b[4*j:])
		}
		format.Decode(floats, f.shape(), b[f.before():len(b)-sumSize])
		if err := compress.Place(worker, m, out[i], floats, positions, i*llama.PageTokens); err != nil {
			m.FreePages(out)
			return nil, err
		}
	}
	return out, nil
}

// Shares returns what the profile says: see [compress.Shares]. nil: the file has none.
func (f *File) Shares() [][]float32 {
	if !f.Profile {
		return nil
	}
	profile := make([][]uint8, len(f.pages))
	for i, b := range f.pages {
		profile[i] = b[4*f.positions() : f.before()]
	}
	return compress.Shares(profile, f.Layers, f.KV)
}
