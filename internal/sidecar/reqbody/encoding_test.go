package reqbody_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ragpilot/ragpilot/internal/sidecar/reqbody"
)

// boundedBody is a body of at most limit bytes.
type boundedBody struct {
	body
	limit int64
}

func (b *boundedBody) Unpacked(n int64) error {
	if n > b.limit {
		return &http.MaxBytesError{Limit: b.limit}
	}
	return nil
}

func packed(t testing.TB, texts ...string) string {
	t.Helper()
	var b bytes.Buffer
	for _, text := range texts {
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func encoded(b io.ReadCloser, length int, encodings ...string) *http.Request {
	r := request(b, int64(length))
	r.Header = http.Header{"Content-Encoding": encodings}
	return r
}

func TestEncodedBodies(t *testing.T) {
	long := strings.Repeat("what a long body says ", 50_000)
	whole := packed(t, long)
	flipped := []byte(whole)
	flipped[len(flipped)/2] ^= 1
	for _, c := range []struct {
		name, sent string
		encodings  []string
		want       string
		failure    error
	}{
		{"gzip", whole, []string{"gzip"}, long, nil},
		{"GZIP", whole, []string{" GZip "}, long, nil},
		{"x-gzip", whole, []string{"x-gzip"}, long, nil},
		{"two members", packed(t, "one ", "two"), []string{"gzip"}, "one two", nil},
		{"nothing packed", packed(t, ""), []string{"gzip"}, "", nil},
		{"empty body", "", []string{"gzip"}, "", nil},
		{"identity", "text", []string{"identity"}, "text", nil},
		{"no encoding", "text", nil, "text", nil},
		{"empty header", "text", []string{""}, "text", nil},
		{"packed without a header", whole, nil, whole, nil},
		{"not packed", `{"messages":[]}`, []string{"gzip"}, "", reqbody.ErrGzip},
		{"one byte", "\x1f", []string{"gzip"}, "", reqbody.ErrGzip},
		{"cut", whole[:len(whole)-9], []string{"gzip"}, "", reqbody.ErrGzip},
		{"cut in the sum", whole[:len(whole)-1], []string{"gzip"}, "", reqbody.ErrGzip},
		{"cut in the header", whole[:5], []string{"gzip"}, "", reqbody.ErrGzip},
		{"garbage behind it", whole + "garbage behind", []string{"gzip"}, "", reqbody.ErrGzip},
		{"a byte behind it", whole + "\x00", []string{"gzip"}, "", reqbody.ErrGzip},
		{"a flipped bit", string(flipped), []string{"gzip"}, "", reqbody.ErrGzip},
	} {
		for how, wrap := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "pieces": iotest.HalfReader, "end with data": iotest.DataErrReader,
		} {
			b := &body{Reader: wrap(strings.NewReader(c.sent))}
			r := encoded(b, len(c.sent), c.encodings...)
			got, err := reqbody.ReadAll(r)
			if !errors.Is(err, c.failure) || err != nil && c.failure == nil || string(got) != c.want {
				t.Errorf("%s, %s: %d bytes, %v; want %d, %v", c.name, how, len(got), err, len(c.want), c.failure)
			}
			if err == nil && (r.Header.Values("Content-Encoding") != nil || b.most < len(got)) {
				t.Errorf("%s, %s: header %q, %d bytes counted for %d", c.name, how, r.Header, b.most, len(got))
			}
		}
	}
}

func TestOtherEncodings(t *testing.T) {
	for _, encodings := range [][]string{{"br"}, {"zstd"}, {"deflate"}, {"gzip, gzip"}, {"gzip", "gzip"}, {"identity, gzip"}, {"x"}} {
		b := &body{Reader: iotest.ErrReader(errors.New("it was read"))}
		_, err := reqbody.ReadAll(encoded(b, 10, encodings...))
		unknown, ok := errors.AsType[*reqbody.EncodingError](err)
		if !ok || !strings.Contains(err.Error(), "Content-Encoding") || !strings.Contains(err.Error(), strings.Join(encodings, ", ")) {
			t.Errorf("%q: %v, %+v", encodings, err, unknown)
		}
	}
}

// bomb is so many zeros, packed.
func bomb(t testing.TB, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.CopyN(z, zeros{}, n); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A body that unpacks to more than it may have is not unpacked further.
func TestBomb(t *testing.T) {
	const limit = 4 << 20
	packed := bytes.Repeat(bomb(t, 1<<20), 1<<10) // in as many members
	b := &boundedBody{body{Reader: bytes.NewReader(packed)}, limit}
	_, err := reqbody.ReadAll(encoded(b, len(packed), "gzip"))
	if large, ok := errors.AsType[*http.MaxBytesError](err); !ok || large.Limit != limit {
		t.Errorf("a bomb: %v", err)
	}
	if b.most > limit+1<<20 {
		t.Errorf("%d bytes were counted, limit %d", b.most, limit)
	}
	unbounded := &body{Reader: bytes.NewReader(packed)}
	if _, err := reqbody.ReadAll(encoded(unbounded, len(packed), "gzip")); err == nil || unbounded.most > 66<<20 {
		t.Errorf("a bomb for a body without a bound: %v, %d bytes were counted", err, unbounded.most)
	}
	for _, n := range []int64{limit, limit + 1} {
		b := &boundedBody{body{Reader: bytes.NewReader(bomb(t, n))}, limit}
		if got, err := reqbody.ReadAll(encoded(b, -1, "gzip")); (err == nil) != (n == limit) || err == nil && int64(len(got)) != n {
			t.Errorf("%d bytes of at most %d: %d, %v", n, limit, len(got), err)
		}
	}
	full := &boundedBody{body{Reader: bytes.NewReader(packed), full: reqbody.ErrFull}, limit}
	if _, err := reqbody.ReadAll(encoded(full, len(packed), "gzip")); !errors.Is(err, reqbody.ErrFull) {
		t.Errorf("without room: %v", err)
	}
}
