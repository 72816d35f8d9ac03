package reqbody

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Encodings are those that [ReadAll] takes, for the header Accept-Encoding of an answer with 415.
const Encodings = "gzip, identity"

// ErrGzip is in the error of [ReadAll] for a body that is not the gzip that its header says.
var ErrGzip = errors.New("the body is not valid gzip, as its Content-Encoding says")

// EncodingError is the error of [ReadAll] for a body in an encoding that is not taken; its answer is 415.
type EncodingError struct{ Encoding string }

func (e *EncodingError) Error() string {
	return fmt.Sprintf("Content-Encoding is %.64q, want gzip, identity or none", e.Encoding)
}

// Bounded is a request's body that knows how long it may be.
type Bounded interface {
	// Unpacked returns a [http.MaxBytesError] if a body of so many bytes, after unpacking, is too long.
	Unpacked(n int64) error
}

// mostUnpacked is the number of bytes that a body may have after unpacking if it is not Bounded.
const mostUnpacked = 64 << 20

// reader returns the body without its encoding, and its length, -1 if that is not known.
func reader(r *http.Request) (io.Reader, int64, error) {
	switch encoding := strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ", ")); strings.ToLower(encoding) {
	case "", "identity":
		return r.Body, r.ContentLength, nil
	case "gzip", "x-gzip":
		return &unpacker{body: r.Body}, -1, nil
	default:
		return nil, 0, &EncodingError{encoding}
	}
}

// unpacker reads the content of a gzip stream up to the bound of the body. An empty body stays empty.
type unpacker struct {
	body  io.Reader
	gzip  *gzip.Reader // nil before the first Read
	total int64
}

func (u *unpacker) Read(p []byte) (int, error) {
	if u.gzip == nil {
		packed := bufio.NewReader(u.body)
		if _, err := packed.Peek(1); err != nil {
			return 0, err
		}
		var err error
		if u.gzip, err = gzip.NewReader(packed); err != nil {
			return 0, broken(err)
		}
	}
	n, err := u.gzip.Read(p)
	u.total += int64(n)
	if large := u.bounded(); large != nil {
		return 0, large
	}
	return n, broken(err)
}

func (u *unpacker) bounded() error {
	if b, ok := u.body.(Bounded); ok {
		return b.Unpacked(u.total)
	}
	if u.total > mostUnpacked {
		return &http.MaxBytesError{Limit: mostUnpacked}
	}
	return nil
}

// broken returns an ErrGzip for what is wrong with a stream, and other errors as they are.
func broken(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &corrupt):
		return fmt.Errorf("%w: %w", ErrGzip, err)
	}
	return err
}
