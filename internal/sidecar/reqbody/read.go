package reqbody

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
)

// Holder is a request's body that counts what is kept of it. [Share] does.
type Holder interface {
	// Hold asks for n more bytes. It may wait; an error is why there are none.
	Hold(ctx context.Context, n int) error
	// Release gives all of them back. More than once is once.
	Release()
}

const (
	// firstPart is the most that is taken for a claim, in bytes. Most bodies are shorter, and are read in one piece.
	firstPart = 128 << 10
	// unknownPart is taken for a body of unknown length.
	unknownPart = 4 << 10
	// mostPart is the most that is taken at a time.
	mostPart = 1 << 20
)

// ReadAll reads a request's body to its end. If it is a [Holder], bytes are asked for as they come: the error of Hold is
// returned as it is. A body in several parts takes twice its length for the moment in which they are put together.
//
// A body in gzip is returned unpacked, and its bytes count as they are then: if it is [Bounded], that error is returned as it is.
// The request has no Content-Encoding afterwards, as what is returned has none. For other encodings the error is an [EncodingError].
func ReadAll(r *http.Request) ([]byte, error) {
	from, length, err := reader(r)
	if err != nil {
		return nil, err
	}
	raw, err := readParts(r, from, length)
	if err == nil {
		r.Header.Del("Content-Encoding")
	}
	return raw, err
}

// readParts reads a request's body, which has a length if that is not negative.
func readParts(r *http.Request, from io.Reader, length int64) ([]byte, error) {
	holder, _ := r.Body.(Holder)
	var full [][]byte
	size, left := unknownPart, length+1 // one more, to meet the end
	if left > 0 {
		size = int(min(left, firstPart))
	}
	for {
		if holder != nil {
			if err := holder.Hold(r.Context(), size); err != nil {
				return nil, err
			}
		}
		part, err := fill(from, make([]byte, 0, size))
		switch {
		case errors.Is(err, io.EOF) && full == nil:
			return part, nil
		case errors.Is(err, io.EOF):
			return bytes.Join(append(full, part), nil), nil
		case err != nil:
			return nil, err
		}
		full = append(full, part)
		left -= int64(size)
		if size = min(2*size, mostPart); left > 0 {
			size = int(min(int64(size), left))
		}
	}
}

// fill reads until part is full, or to an error.
func fill(r io.Reader, part []byte) ([]byte, error) {
	for len(part) < cap(part) {
		n, err := r.Read(part[len(part):cap(part)])
		part = part[:len(part)+n]
		if err != nil {
			return part, err
		}
	}
	return part, nil
}

// Release gives back the bytes of what [ReadAll] returned, when it is not needed any more. The server does the same when the answer has
// ended.
func Release(r *http.Request) {
	if holder, ok := r.Body.(Holder); ok {
		holder.Release()
	}
}
