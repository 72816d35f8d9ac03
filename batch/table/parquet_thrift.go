package table

import (
	"errors"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
)

// thriftReader checks the sizes that metadata claim. The library allocates 2 GiB for a text, or two billion items of a list, before it
// reads them, and recurses as deep as structs are nested.
type thriftReader struct {
	compact
	in     *io.LimitedReader
	nested int64 // structs and lists that are open, or follow in a list
	items  int64 // structs and lists in lists that may follow
}

// compact has a name that is none of its methods.
type compact = thrift.Reader

var errThrift = errors.New("sizes in the metadata are wrong")

// mostNested bounds the structs and lists within others.
const mostNested = 1 << 18

// decodeThrift reads a struct of at most so many bytes into v, as the library would. It returns how many bytes it has.
func decodeThrift(in io.Reader, most int64, v any) (int64, error) {
	limited := &io.LimitedReader{R: in, N: most}
	r := &thriftReader{new(thrift.CompactProtocol).NewReader(limited), limited, 1, min(most/2+64, mostNested)}
	err := thrift.NewDecoder(r).Decode(v)
	if errors.Is(err, errThrift) {
		err = errThrift // without all structs around it, which may be very many
	}
	return most - limited.N, err
}

func (r *thriftReader) ReadBytes() ([]byte, error) {
	n, err := r.ReadLength()
	if err == nil && int64(n) > r.in.N {
		err = errThrift
	}
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r.in, b)
	return b, err
}

func (r *thriftReader) ReadString() (string, error) {
	b, err := r.ReadBytes()
	return string(b), err
}

func (r *thriftReader) ReadField() (thrift.Field, error) {
	f, err := r.compact.ReadField()
	switch {
	case err != nil:
	case f.Type == thrift.STOP:
		r.nested--
	case f.Type == thrift.STRUCT:
		if r.nested++; r.nested > mostNested {
			err = errThrift
		}
	}
	return f, err
}

func (r *thriftReader) ReadList() (thrift.List, error) {
	l, err := r.compact.ReadList()
	if err == nil && l.Type >= thrift.LIST {
		r.nested += int64(l.Size)
		r.items -= int64(l.Size)
	}
	if err == nil && (int64(l.Size) > r.in.N || r.items < 0 || r.nested > mostNested) {
		err = errThrift
	}
	return l, err
}

func (r *thriftReader) ReadSet() (thrift.Set, error) {
	l, err := r.ReadList()
	return thrift.Set(l), err
}

func (r *thriftReader) ReadMap() (thrift.Map, error) { return thrift.Map{}, errThrift } // Parquet has none
