package table

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
)

// Bounds of what a Parquet file may make the library allocate.
const (
	mostFooter = 16 << 20
	mostPage   = 128 << 20
	mostMemory = 1 << 30 // in one page of each column, which are in memory together
	mostValues = 1 << 24 // in a page
)

var errParquet = errors.New("broken Parquet file")

// guardFooter checks the sizes in the footer. The library allocates the footer's size as it stands, up to 4 GiB, what each list and text
// in it claims, and what the schema claims of children and of bytes of a value.
func guardFooter(f input, size int64) error {
	var tail [8]byte
	if size < 12 {
		return fmt.Errorf("%w: %d bytes are too few", errParquet, size)
	}
	if _, err := f.ReadAt(tail[:], size-8); err != nil {
		return err
	}
	if string(tail[4:]) != "PAR1" {
		return fmt.Errorf("%w: it does not end as a Parquet file does, so it is cut off or none", errParquet)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > mostFooter {
		return fmt.Errorf("%w: metadata of %d bytes, at most %d are allowed", ErrTooLarge, n, mostFooter)
	}
	if n > size-12 {
		return fmt.Errorf("%w: metadata of %d bytes in a file of %d", errParquet, n, size)
	}
	var footer format.FileMetaData
	r := bufio.NewReader(io.NewSectionReader(f, size-8-n, n))
	if _, err := decodeThrift(r, n, &footer); err != nil {
		return fmt.Errorf("%w: %w", errParquet, err)
	}
	for _, node := range footer.Schema {
		if node.NumChildren < 0 || int(node.NumChildren) >= len(footer.Schema) {
			return fmt.Errorf("%w: a schema with %d children", errParquet, node.NumChildren)
		}
		if node.TypeLength != nil && (*node.TypeLength < 0 || *node.TypeLength > mostPage>>4) {
			return fmt.Errorf("%w: a schema with values of %d bytes", errParquet, *node.TypeLength)
		}
	}
	return nil
}

// guardChunk checks all pages of a column chunk, and returns the size of the largest. The library allocates what the head of a page says
// of its bytes and values.
func guardChunk(ctx context.Context, f input, size int64, chunk *format.ColumnChunk, column *parquet.Column) (most int64, err error) {
	m := &chunk.MetaData
	from := m.DataPageOffset
	if m.DictionaryPageOffset != 0 {
		from = m.DictionaryPageOffset
	}
	if chunk.FilePath != "" {
		return 0, fmt.Errorf("%w: values in another file", ErrFormat)
	}
	if from < 4 || m.TotalCompressedSize < 0 || m.TotalCompressedSize > size || from > size-m.TotalCompressedSize {
		return 0, fmt.Errorf("%w: a column at byte %d with %d bytes in a file of %d", errParquet, from, m.TotalCompressedSize, size)
	}
	left, values := m.TotalCompressedSize, int64(0)
	r := bufio.NewReaderSize(&until{ctx, io.NewSectionReader(f, from, left)}, 1<<16)
	var buf []byte
	for left > 0 {
		var h format.PageHeader
		n, err := decodeThrift(r, min(left, mostFooter), &h)
		if err != nil {
			return 0, fmt.Errorf("%w: page header: %w", errParquet, err)
		}
		left -= n
		packed, full := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
		if packed < 0 || packed > left || full < 0 {
			return 0, fmt.Errorf("%w: a page of %d bytes where %d are left", errParquet, packed, left)
		}
		if max(packed, full) > mostPage {
			return 0, fmt.Errorf("%w: a page of %d bytes, at most %d are allowed", ErrTooLarge, max(full, packed), mostPage)
		}
		left -= packed
		most = max(most, full)
		buf = slices.Grow(buf[:0], int(packed))[:packed]
		if _, err := io.ReadFull(r, buf); err != nil {
			return 0, fmt.Errorf("%w: %w", errParquet, err)
		}
		k, err := guardPage(&h, buf, m.Codec, column)
		if err != nil {
			return 0, err
		}
		values += k
	}
	if values != m.NumValues {
		return 0, fmt.Errorf("%w: %d values of %d", errParquet, values, m.NumValues)
	}
	return most, nil
}

// guardPage checks the data of a page, and returns how many values it has for rows.
func guardPage(h *format.PageHeader, data []byte, codec format.CompressionCodec, column *parquet.Column) (values int64, err error) {
	full, v1, v2 := int64(h.UncompressedPageSize), h.DataPageHeader, h.DataPageHeaderV2
	var repetition, definition []byte
	switch {
	case h.Type == format.DataPage && v1 != nil:
		values = int64(v1.NumValues)
	case h.Type == format.DataPageV2 && v2 != nil:
		values = int64(v2.NumValues)
		r, d := int64(v2.RepetitionLevelsByteLength), int64(v2.DefinitionLevelsByteLength)
		if r < 0 || d < 0 || r+d > min(full, int64(len(data))) {
			return 0, fmt.Errorf("%w: levels of %d and %d bytes in a page of %d", errParquet, r, d, len(data))
		}
		repetition, definition, data = data[:r], data[r:r+d], data[r+d:]
		full -= r + d
		if v2.IsCompressed != nil && !*v2.IsCompressed {
			codec = format.Uncompressed
		}
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader != nil:
		values = int64(h.DictionaryPageHeader.NumValues)
	default:
		return 0, fmt.Errorf("%w: a page of type %d without a header of its type", errParquet, h.Type)
	}
	if values < 0 || values > mostValues {
		return 0, fmt.Errorf("%w: a page of %d values, at most %d are allowed", ErrTooLarge, values, mostValues)
	}
	if codec != format.Uncompressed {
		if data, err = unpack(codec, data, full); err != nil {
			return 0, err
		}
	}
	if h.Type == format.DictionaryPage {
		return 0, guardValues(data, format.Plain, values, column.Type())
	}
	var encoding format.Encoding
	r, d := column.MaxRepetitionLevel(), column.MaxDefinitionLevel()
	if h.Type == format.DataPageV2 {
		encoding = v2.Encoding
	} else {
		encoding = v1.Encoding
		if repetition, data, err = levels(data, r, v1.RepetitionLevelEncoding); err != nil {
			return 0, err
		}
		if definition, data, err = levels(data, d, v1.DefinitionLevelEncoding); err != nil {
			return 0, err
		}
	}
	if _, err := highest(repetition, r, values); err != nil {
		return 0, err
	}
	present, err := highest(definition, d, values)
	if err == nil && h.Type == format.DataPageV2 && int64(v2.NumNulls) != values-present {
		// The library takes as many values from the page as this count leaves, and waits forever for the others.
		err = fmt.Errorf("%w: %d NULLs in a page of %d values with %d present", errParquet, v2.NumNulls, values, present)
	}
	if err != nil {
		return 0, err
	}
	return values, guardValues(data, encoding, present, column.Type())
}

// levels returns the levels of a page of version 1, and what is behind them.
func levels(data []byte, most int, encoding format.Encoding) (levels, rest []byte, err error) {
	if most == 0 {
		return nil, data, nil
	}
	if encoding != format.RLE {
		return nil, nil, fmt.Errorf("%w: levels in an encoding that is out of use", ErrFormat)
	}
	if len(data) < 4 || int64(binary.LittleEndian.Uint32(data)) > int64(len(data)-4) {
		return nil, nil, fmt.Errorf("%w: levels are cut off", errParquet)
	}
	n := 4 + int(binary.LittleEndian.Uint32(data))
	return data[4:n], data[n:], nil
}

// highest returns how many levels are the highest one, and refuses higher ones. For definition levels these are the values that are there.
func highest(levels []byte, most int, values int64) (int64, error) {
	if most == 0 {
		return values, nil
	}
	width := bits.Len(uint(most)) //nolint:gosec // it is positive
	n, err := runs(levels, width, values)
	if err != nil {
		return 0, err
	}
	if n < values {
		return 0, fmt.Errorf("%w: %d levels of %d", errParquet, n, values)
	}
	out, err := (&rle.Encoding{BitWidth: width}).DecodeLevels(nil, levels)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errParquet, err)
	}
	if out = out[:values]; values > 0 && int(slices.Max(out)) > most {
		return 0, fmt.Errorf("%w: a level of %d, the highest is %d", errParquet, slices.Max(out), most)
	}
	return int64(bytes.Count(out, []byte{byte(most)})), nil //nolint:gosec // the library allows 255
}

// guardValues checks that a page has as many encoded values as are needed: for fewer the library waits forever, or returns what its memory
// held before.
func guardValues(data []byte, encoding format.Encoding, need int64, typ parquet.Type) (err error) {
	if need == 0 {
		return nil
	}
	have := int64(0)
	switch encoding {
	case format.PlainDictionary, format.RLEDictionary: //nolint:staticcheck // old files have the deprecated one
		if len(data) > 0 && data[0] == 0 {
			have = need // all are the first of the dictionary
		} else if len(data) > 0 {
			have, err = runs(data[1:], int(data[0]), need)
		}
	case format.RLE: // the library reads a run of true as one true and seven false
		return fmt.Errorf("%w: booleans in runs; write them with plain encoding (data page version 1.0)", ErrFormat)
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
		_, have, err = deltas(data, need)
	case format.DeltaByteArray:
		have, err = prefixed(data, need)
	default: // plain, and the same in another order
		have = plain(data, typ)
	}
	if err == nil && have < need {
		err = fmt.Errorf("%w: a page has %d values of %d", errParquet, have, need)
	}
	return err
}

// plain returns how many plain values there are.
func plain(data []byte, typ parquet.Type) (n int64) {
	switch size := typ.Length(); {
	case typ.Kind() == parquet.Boolean:
		return int64(len(data)) * 8
	case typ.Kind() == parquet.FixedLenByteArray && size > 0:
		return int64(len(data) / size)
	case typ.Kind() == parquet.Int96:
		return int64(len(data) / 12)
	case typ.Kind() != parquet.ByteArray:
		return int64(len(data) * 8 / max(size, 1))
	}
	for len(data) >= 4 {
		size := int64(binary.LittleEndian.Uint32(data))
		if data = data[4:]; size > int64(len(data)) {
			break
		}
		data = data[size:]
		n++
	}
	return n
}

// runs checks the sizes in runs of values of so many bits, and counts the values. The library allocates what each run claims, 16 million
// values in three bytes.
func runs(data []byte, width int, values int64) (total int64, err error) {
	for len(data) > 0 {
		head, n := binary.Uvarint(data)
		if n <= 0 || head>>1 > mostValues || width > 32 {
			return 0, fmt.Errorf("%w: a run of %d values of %d bits", errParquet, head>>1, width)
		}
		data = data[n:]
		count, size := int64(head>>1), int64(width+7)/8 //nolint:gosec // it is at most mostValues
		if head&1 == 1 {
			size, count = count*int64(width), count*8
		}
		if total += count; size > int64(len(data)) || total > values+512 { // the last group may be padded
			return 0, fmt.Errorf("%w: runs of %d values in a page of %d", errParquet, total, values)
		}
		data = data[size:]
	}
	return total, nil
}

// deltas passes over numbers that are packed as differences, and returns what is behind them and how many they are. The library allocates
// as many as their head claims, up to 2 billion.
func deltas(data []byte, values int64) (rest []byte, count int64, err error) {
	broken := fmt.Errorf("%w: packed numbers are cut off", errParquet)
	var head [4]uint64 // values in a block, parts of a block, values, the first value
	for i := range head {
		var n int
		if head[i], n = binary.Uvarint(data); n <= 0 {
			return nil, 0, broken
		}
		data = data[n:]
	}
	block, parts := head[0], head[1]
	if head[2] > uint64(max(values, 0)) || block > 1<<16 || parts == 0 || parts > block {
		return nil, 0, fmt.Errorf("%w: %d packed numbers in a page of %d values", errParquet, head[2], values)
	}
	per := int64(block / parts) //nolint:gosec // it is at most block
	count = int64(head[2])      //nolint:gosec // it is at most values
	for left := count - 1; left > 0; {
		_, n := binary.Uvarint(data)
		if n <= 0 || len(data)-n < int(parts) { //nolint:gosec // it is at most block
			return nil, 0, broken
		}
		widths := data[n : n+int(parts)] //nolint:gosec // it is at most block
		data = data[len(widths)+n:]
		for _, width := range widths {
			if left <= 0 {
				break
			}
			data = data[min(per*int64(width)/8, int64(len(data))):] // the last may be cut off
			left -= per
		}
	}
	return data, count, nil
}

// prefixed counts values that share beginnings. The library allocates the sum of all lengths: a few bytes may be gigabytes.
func prefixed(data []byte, values int64) (int64, error) {
	rest, count, err := deltas(data, values)
	if err == nil {
		_, _, err = deltas(rest, values)
	}
	sum := int64(0)
	for _, packed := range [][]byte{data, rest} {
		if err != nil {
			return 0, err
		}
		var lengths []int32
		if lengths, err = new(delta.BinaryPackedEncoding).DecodeInt32(nil, packed); err != nil {
			return 0, fmt.Errorf("%w: %w", errParquet, err)
		}
		for _, n := range lengths {
			sum += int64(n)
		}
	}
	if sum < 0 || sum > mostPage {
		return 0, fmt.Errorf("%w: values of %d bytes in a page", ErrTooLarge, sum)
	}
	return count, nil
}
