package table

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// unpack unpacks a page, whose data must have so many bytes. The library's decoders allocate what the compressed data ask for, however
// much it is; of broken LZ4 data they allocate twice as much again and again. So all data are unpacked here first, into no more than size.
func unpack(codec format.CompressionCodec, data []byte, size int64) (out []byte, err error) {
	if len(data) == 0 && size == 0 {
		return nil, nil
	}
	switch codec {
	case format.Snappy:
		n, used := binary.Uvarint(data)
		if used <= 0 || n != uint64(size) { //nolint:gosec // it is not negative
			return nil, fmt.Errorf("%w: compressed data of %d bytes where the page says %d", errParquet, n, size)
		}
		out, err = parquet.Snappy.Decode(make([]byte, 0, size), data)
	case format.Lz4Raw:
		var n int
		out = make([]byte, size)
		n, err = lz4.UncompressBlock(data, out)
		out = out[:max(n, 0)]
	case format.Gzip:
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			out, err = io.ReadAll(io.LimitReader(r, size+1))
		}
	case format.Zstd:
		var r *zstd.Decoder
		r, err = zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostPage))
		if err == nil {
			out, err = io.ReadAll(io.LimitReader(r, size+1))
			r.Close()
		}
	default: // nothing bounds Brotli
		return nil, fmt.Errorf("%w: pages compressed with %s", ErrFormat, codec)
	}
	if err == nil && int64(len(out)) != size {
		err = fmt.Errorf("not the %d bytes that the page says", size)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: compressed data: %w", errParquet, err)
	}
	return out, nil
}
