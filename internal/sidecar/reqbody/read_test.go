package reqbody_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/sidecar/reqbody"
)

// body is a request's body with a holder of the test's own.
type body struct {
	io.Reader
	held, most, released int
	full                 error
}

func (b *body) Close() error { return nil }
func (b *body) Release()     { b.released++ }
func (b *body) Hold(_ context.Context, n int) error {
	b.held += n
	b.most = max(b.most, b.held)
	return b.full
}

func request(b io.ReadCloser, length int64) *http.Request {
	return &http.Request{Body: b, ContentLength: length}
}

// Bodies come out as they went in, whatever pieces they arrive in; as much is asked for as they take, and hardly more.
func TestReadAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(100<<10, 600<<10)).Draw(t, "size")
		text := make([]byte, size)
		for i := range text {
			text[i] = byte(i * 7)
		}
		reader := rapid.SampledFrom([]func(io.Reader) io.Reader{
			func(r io.Reader) io.Reader { return r }, iotest.HalfReader, iotest.DataErrReader,
		}).Draw(t, "reader")
		length := int64(size)
		if rapid.Bool().Draw(t, "chunked") {
			length = -1
		}
		b := &body{Reader: reader(bytes.NewReader(text))}
		r := request(b, length)
		got, err := reqbody.ReadAll(r)
		if err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%d bytes, %v; want %d", len(got), err, size)
		}
		if b.most < len(got) || length >= 0 && b.most != size+1 || b.most > 2*size+4<<10 {
			t.Fatalf("%d bytes were asked for, for %d", b.most, size)
		}
		reqbody.Release(r)
		if b.released != 1 {
			t.Fatalf("released %d times", b.released)
		}
	})
}

func TestReadAllOfPlainBody(t *testing.T) {
	r := request(io.NopCloser(bytes.NewReader([]byte("text"))), 4)
	if got, err := reqbody.ReadAll(r); err != nil || string(got) != "text" {
		t.Errorf("%q, %v", got, err)
	}
	reqbody.Release(r) // of nothing
}

// A length is only a claim: who sends little takes little.
func TestClaimsCostNothing(t *testing.T) {
	stop := errors.New("broken off")
	for _, claimed := range []int64{-1, 1 << 10, 64 << 20, 1 << 60} {
		t.Run(fmt.Sprint(claimed), func(t *testing.T) {
			var before, after runtime.MemStats
			b := &body{Reader: io.MultiReader(bytes.NewReader(make([]byte, 100)), iotest.ErrReader(stop))}
			runtime.ReadMemStats(&before)
			_, err := reqbody.ReadAll(request(b, claimed))
			runtime.ReadMemStats(&after)
			if !errors.Is(err, stop) {
				t.Errorf("error %v", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 200<<10 || b.most > 200<<10 {
				t.Errorf("%d bytes were taken, %d asked for", took, b.most)
			}
		})
	}
}

// A body that gets no memory is not read on.
func TestNoRoom(t *testing.T) {
	full := errors.New("full")
	rest := bytes.NewReader(make([]byte, 1<<20))
	if _, err := reqbody.ReadAll(request(&body{Reader: rest, full: full}, 1<<20)); !errors.Is(err, full) || rest.Len() != 1<<20 {
		t.Errorf("error %v, %d bytes are left", err, rest.Len())
	}
}

func BenchmarkReadAll(b *testing.B) {
	for _, size := range []int{2 << 10, 85 << 10, 1 << 20, 60 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			text := bytes.NewReader(make([]byte, size))
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = text.Seek(0, io.SeekStart)
				if _, err := reqbody.ReadAll(request(io.NopCloser(text), int64(size))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
