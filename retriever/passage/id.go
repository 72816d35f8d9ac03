package passage

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"
)

// ErrID is wrapped by the errors of [ParseID].
var ErrID = errors.New("not a block ID")

// ID is the identity of a chunk of a document. It says what the text is, not where it is stored: filled with the
// same documents, two stores give the same IDs, and an index that is built again gives the same IDs as before.
type ID struct {
	// Doc names the document: a path, an address, a key. Not empty.
	Doc string
	// Version is what changes whenever the document does: a revision, an entity tag, the hash of its bytes. Empty:
	// unknown.
	Version string
	// Chunk is the chunk's number in the document, from 0; negative: the document is not cut.
	Chunk int
}

// String returns doc@version#chunk, without the parts that are not known. In the parts '%', '@' and '#' stand as
// percent-encoded bytes.
func (id ID) String() string {
	var b strings.Builder
	b.Grow(len(id.Doc) + len(id.Version) + 8)
	b.WriteString(escape(id.Doc))
	if id.Version != "" {
		b.WriteByte('@')
		b.WriteString(escape(id.Version))
	}
	if id.Chunk >= 0 {
		b.WriteByte('#')
		b.WriteString(strconv.Itoa(id.Chunk))
	}
	return b.String()
}

// ParseID reads what [ID.String] writes: ParseID(id.String()) is id, with a Chunk below 0 read as -1. IDs of other
// makers are read as far as they can be: the chunk is a number behind the last '#', the version stands behind the last
// '@' in front of it, and what is neither belongs to Doc. So "https://example.com/a#intro" is a document. An ID without
// a document is an error that wraps [ErrID].
func ParseID(text string) (ID, error) {
	id := ID{Doc: text, Chunk: -1}
	if i := strings.LastIndexByte(id.Doc, '#'); i >= 0 {
		if n, ok := number(id.Doc[i+1:]); ok {
			id.Doc, id.Chunk = id.Doc[:i], n
		}
	}
	if i := strings.LastIndexByte(id.Doc, '@'); i >= 0 && i < len(id.Doc)-1 {
		id.Doc, id.Version = id.Doc[:i], unescape(id.Doc[i+1:])
	}
	id.Doc = unescape(id.Doc)
	if id.Doc == "" {
		return ID{}, fmt.Errorf("%w: %q names no document", ErrID, text)
	}
	return id, nil
}

// number reads a number as String writes it, without signs and leading zeros.
func number(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == text
}

// ContentVersion returns a version for a text whose store knows none: 8 hexadecimal digits that change with the text.
// That is enough to distinguish the versions of one document. It is short because it is part of what the model reads, and
// not a proof that two texts are equal.
func ContentVersion(text string) string { return fmt.Sprintf("%08x", uint32(xxh3.HashString(text))) }

var escaper = strings.NewReplacer("%", "%25", "@", "%40", "#", "%23")

func escape(part string) string { return escaper.Replace(part) }

// unescape leaves a part as it is if it was not escaped by String.
func unescape(part string) string {
	if !strings.Contains(part, "%") {
		return part
	}
	plain, err := url.PathUnescape(part)
	if err != nil {
		return part
	}
	return plain
}
