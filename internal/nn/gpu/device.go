package gpu

import (
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// Device is a processor with its memory. All methods are safe for concurrent use.
type Device interface {
	// Name is what users call it: "cpu", "cuda:0".
	Name() string
	// Kernel names the arithmetic: keys and values of one name are the same bits on all machines, and files of them name it.
	Kernel() string
	// Memory says how much there is, and how much this Device has allocated.
	Memory() Memory
	// Alloc returns n floats with undefined values. what names them in errors.
	Alloc(what string, n int) (Buffer, error)
	// Free gives a buffer back, once all operations on it have ended. A zero Buffer is ignored.
	Free(b Buffer)
	// Matrix makes packed weights ready for products. data must stay as it is until Close.
	Matrix(what string, t quant.Type, rows, cols int, data []byte) (Matrix, error)
	// NewPool returns a pool of pages for a model's keys and values.
	NewPool(heads compute.Heads, layers int) Pool
	// NewStream returns a stream whose operations use so many threads, where the device has any. It must be closed.
	NewStream(threads int) (Stream, error)
	// Close gives everything back: buffers, matrices, pools. Nothing of the device may be in use.
	Close() error
}

// Memory is that of a device, in bytes. Zeros: it is not known.
type Memory struct{ Total, Free, Used int64 }

// Buffer is floats in a device's memory.
type Buffer struct {
	// Host are the floats of a device whose memory is the program's; nil on others.
	Host []float32
	// Addr is where they are in another device's memory.
	Addr uint64
	// N is their number.
	N int
	// What names them in errors.
	What string
}

// Slice returns floats from to to-1 of b.
func (b Buffer) Slice(from, to int) Buffer {
	if from < 0 || to < from || to > b.N {
		panic(fmt.Sprintf("gpu: floats %d to %d of %d of %s", from, to, b.N, b.What))
	}
	if b.Host != nil {
		b.Host = b.Host[from:to:to]
	}
	b.Addr, b.N = b.Addr+4*uint64(from), to-from
	return b
}

// First returns the first n floats of b.
func (b Buffer) First(n int) Buffer { return b.Slice(0, n) }

// Matrix is packed weights, one row after the other. It is only read.
type Matrix struct {
	compute.Matrix        // Data is the program's memory
	Addr           uint64 // of a copy in another device's memory
	What           string // names it in errors
}

// Page holds the keys and values of [compute.PageTokens] tokens in all layers.
type Page struct {
	// Host has them layer after layer, in a layer first keys and then values (see [compute.Page]); nil on a device with memory of its own.
	Host []float32
	// Addr is where those of the first layer are in another device's memory.
	Addr uint64
}

// Pool is pages for the keys and values of one model. All methods are safe for concurrent use, on different pages.
type Pool interface {
	// Floats is the size of a page.
	Floats() int
	// New returns a page with undefined contents.
	New() (Page, error)
	// Free takes a page back.
	Free(p Page)
	// Copy copies a page.
	Copy(to, from Page) error
	// Write sets a page. Operations of streams that begin later see it; they may wait for it layer by layer. The floats may be changed when
	// Write has returned.
	Write(to Page, floats []float32) error
	// Read gets a page's floats. Operations on it must have been waited for with Sync.
	Read(floats []float32, from Page) error
	// Take gets a page as Read does, in memory that is the caller's now. The page's contents are undefined afterwards.
	Take(p *Page) ([]float32, error)
}

// Run is a number of consecutive tokens of one sequence among the rows of a call: they are at Position, Position+1, …, and look at
// all tokens up to themselves. Pages are the sequence's, the first token's first.
type Run struct {
	Rows     int
	Position int
	Pages    []Page
	Probes   []*compute.Probe // of each layer; nil: none. An element may be nil, and several may be the same
}

// Batch is what a call's rows look at, ready for a stream. It is valid until the stream makes the same kind of batch again.
type Batch struct {
	Runs []Run
	// Own is the stream's.
	Own any
}

// Stream is operations that run one after the other, in the order of the calls. It is for one goroutine at a time. Buffers of an operation
// may not overlap unless it says so.
type Stream interface {
	// Write sets floats. They may be changed when it has returned.
	Write(to Buffer, floats []float32)
	// Read gets floats. They are there when Sync has returned without an error.
	Read(floats []float32, from Buffer)
	// Rows writes the rows of w with these numbers, unpacked, one after the other.
	Rows(out Buffer, w *Matrix, numbers []int32)
	// MatMul computes out = a·wᵀ for rows rows: a has rows × w.Cols floats, out rows × w.Rows.
	MatMul(out, a Buffer, rows int, w *Matrix)
	// Norm writes each row of x, divided by its root mean square and multiplied by weights, to out, which may be x.
	Norm(out, x, weights Buffer, epsilon float32)
	// Add adds y to x.
	Add(x, y Buffer)
	// AddRow adds bias to each row of x.
	AddRow(x, bias Buffer)
	// Gate computes silu(g)·u into g.
	Gate(g, u Buffer)
	// Rotate turns all heads of all rows of x by their positions' angles, of which each row has rope.Dim floats: see
	// [compute.Rope.Angles].
	Rotate(x, angles Buffer, rope *compute.Rope)
	// Keep moves rows of width floats together: row i becomes what row numbers[i] was. Numbers ascend.
	Keep(x Buffer, width int, numbers []int32)

	// Batch makes rows ready for Store and Attend in all layers. kind is 0 or 1: a stream has one batch of each at a time.
	Batch(kind int, pool Pool, runs []Run) Batch
	// Store writes the rows' keys and values of a layer into their pages.
	Store(b Batch, layer int, keys, values Buffer)
	// Attend computes a layer's attention. q and out have a row for each of the batch's. Probes have what they see when Sync has
	// returned without an error.
	Attend(b Batch, layer int, out, q Buffer)

	// Move copies the keys and values of n tokens, in all layers, from the places behind from to those behind at. by are the angles by
	// which keys turn; nil: they stay as they are, bit for bit. The pages may not be the same.
	Move(pool Pool, to []Page, at int, from []Page, fromAt, n int, by []float32, rope *compute.Rope)
	// Gather copies, of each head of keys and values in each layer, chosen tokens, whose numbers are in chosen[layer][head], to the first
	// places of to.
	Gather(pool Pool, to, from []Page, chosen [][][]int)
	// Turn turns the keys of a page in place, each by angles of its own: steps[(layer·KV+head)·PageTokens+slot] positions on.
	Turn(pool Pool, p Page, steps []int32, rope *compute.Rope)
	// ValueNorms writes the Euclidean norms of the first n tokens' values in a layer, head after head. They are there when Sync has
	// returned without an error.
	ValueNorms(norms []float64, pool Pool, layer int, pages []Page, n int)
	// Largest returns for each row of values, of width floats, the places of the k largest in ascending order. Of equal values the first
	// are taken. It waits for the device.
	Largest(values []float32, width, k int) ([][]int, error)

	// Argmax writes the place of the largest number of each row of width floats of x; of equal ones that of the first. They are there when
	// Sync has returned without an error.
	Argmax(places []int32, x Buffer, width int)

	// Sync waits for all operations and returns the error of the first that failed, an [*Error], and forgets it.
	Sync() error
	// Close gives back what the stream has.
	Close()
}

// Reasons of errors.
var (
	// ErrMemory: the device has no room.
	ErrMemory = errors.New("out of memory")
	// ErrLost: the device does not answer any more. Nothing works on it until the program is started again.
	ErrLost = errors.New("the device is lost")
	// ErrNoDevice: there is no such device.
	ErrNoDevice = errors.New("no device")
)

// Error is why an operation failed.
type Error struct {
	Device    string // "cuda:0"
	Operation string // or kernel: "attend"
	What      string // tensor: "blk.3.attn_q.weight"; empty: none
	Err       error
}

func (e *Error) Error() string {
	what := ""
	if e.What != "" {
		what = " of " + e.What
	}
	return fmt.Sprintf("device %s: %s%s: %v", e.Device, e.Operation, what, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
