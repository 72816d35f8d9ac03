package sse_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/base/sse"
)

// parsed is an event with its data copied, so that it outlives the next call.
type parsed struct{ Name, Data string }

// parse reads all events of a stream.
func parse(r io.Reader, limit int) ([]parsed, error) {
	events := sse.NewReader(bufio.NewReaderSize(r, 64), limit)
	var all []parsed
	for {
		e, err := events.Next()
		if err != nil {
			if _, again := events.Next(); again == nil {
				return all, errors.New("an event after the end")
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return all, err
		}
		all = append(all, parsed{e.Name, string(e.Data)})
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat("0123456789", 30)
	cases := []struct {
		name, stream string
		want         []parsed
	}{
		{"empty", "", nil},
		{"one", "data: a\n\n", []parsed{{"", "a"}}},
		{"two", "data: a\n\ndata: b\n\n", []parsed{{"", "a"}, {"", "b"}}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []parsed{{"", "a"}, {"", "b"}}},
		{"CR", "data: a\r\rdata: b\r\r", []parsed{{"", "a"}, {"", "b"}}},
		{"mixed ends", "data: a\r\n\ndata: b\n\rdata: c\r\r\n", []parsed{{"", "a"}, {"", "b"}, {"", "c"}}},
		{"several lines", "data: a\ndata: b\ndata:\ndata: c\n\n", []parsed{{"", "a\nb\n\nc"}}},
		{"one space is dropped", "data:  a \n\n", []parsed{{"", " a "}}},
		{"no space", "data:a\n\n", []parsed{{"", "a"}}},
		{"no colon", "data\n\n", []parsed{{"", ""}}},
		{"colon in the data", "data: a: b\n\n", []parsed{{"", "a: b"}}},
		{"comments", ": ping\n\n:\n\ndata: a\n: pong\n\n", []parsed{{"", "a"}}},
		{"other fields", "id: 1\nretry: 2\nfoo: 3\nbar\ndata: a\n\n", []parsed{{"", "a"}}},
		{"name", "event: error\ndata: a\n\ndata: b\n\n", []parsed{{"error", "a"}, {"", "b"}}},
		{"name without data", "event: error\n\ndata: b\n\n", []parsed{{"", "b"}}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []parsed{{"", "a"}}},
		{"half a byte order mark", "\xef\xbbdata: a\n\ndata: b\n\n", []parsed{{"", "b"}}},
		{"cut off after the line", "data: a\n", []parsed{{"", "a"}}},
		{"cut off in the line", "data: a", []parsed{{"", "a"}}},
		{"cut off in a comment", "data: a\n: pi", []parsed{{"", "a"}}},
		{"cut off without data", "event: x", nil},
		{"long line", "data: " + long + "\r\n\r\n", []parsed{{"", long}}},
		{"only ends", "\n\r\n\r\r\n", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			readers := map[string]func(io.Reader) io.Reader{
				"at once":       func(r io.Reader) io.Reader { return r },
				"byte by byte":  iotest.OneByteReader,
				"half by half":  iotest.HalfReader,
				"data with EOF": iotest.DataErrReader,
			}
			for how, reader := range readers {
				got, err := parse(reader(strings.NewReader(c.stream)), 1000)
				if err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", how, diff)
				}
			}
		})
	}
}

func TestEventLimits(t *testing.T) {
	cases := []struct {
		name, stream string
		ok           bool
	}{
		{"line at the limit", "data: " + strings.Repeat("x", 94) + "\n\n", true},
		{"line over it", "data: " + strings.Repeat("x", 95) + "\n\n", false},
		{"comment over it", ": " + strings.Repeat("x", 200) + "\n\n", false},
		{"line without an end", strings.Repeat("x", 1000), false},
		{"data over it", strings.Repeat("data: 0123456789\n", 10) + "\n", false},
		{"many comments", strings.Repeat(": 0123456789\n", 1000), true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(strings.NewReader(c.stream), 100)
			if c.ok != (err == nil) || err != nil && !errors.Is(err, sse.ErrTooLong) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestEventBeforeFault: an event that is complete is given out before the fault that follows it, and a fault in an
// event's middle is not taken for its end.
func TestEventBeforeFault(t *testing.T) {
	broken := errors.New("broken")
	got, err := parse(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)), 100)
	if diff := cmp.Diff([]parsed{{"", "a"}}, got); diff != "" || !errors.Is(err, broken) {
		t.Errorf("error %v, events (-want +got):\n%s", err, diff)
	}
}

// TestEventIsNotHeldBack: the blank line is enough, even if its CR might be half of a CRLF.
func TestEventIsNotHeldBack(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\n\r\n", "\r\n\r", "\r\r"} {
		r, w := io.Pipe()
		go func() { _, _ = io.WriteString(w, "data: a"+end) }()
		if e, err := sse.NewReader(bufio.NewReader(r), 100).Next(); err != nil || string(e.Data) != "a" {
			t.Errorf("%q: %q, %v", end, e.Data, err)
		}
		_ = r.Close()
	}
}

// FuzzEvents: no input makes the parser fail other than by its limits, and how the bytes are cut into reads changes
// nothing. A parser as slow and plain as the standard's text agrees.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "data: a\r\n\r\ndata: b\r\r", ": x\n\nevent: e\ndata\n\n", "\xef\xbb\xbfdata: a", "data: a\ndata: b\n\n\n",
		"\r\n\rdata:\r",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		const limit = 1 << 20
		at, err := parse(bytes.NewReader(stream), limit)
		if err != nil {
			t.Fatal(err)
		}
		by, err := parse(iotest.OneByteReader(bytes.NewReader(stream)), limit)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(at, by); diff != "" {
			t.Errorf("at once and byte by byte differ:\n%s", diff)
		}
		if diff := cmp.Diff(plain(string(stream)), at); diff != "" {
			t.Errorf("(-plain +got):\n%s", diff)
		}
	})
}

// plain is the standard's algorithm on a whole string, with our deviation at the end of the stream.
func plain(stream string) []parsed {
	stream = strings.TrimPrefix(stream, "\xef\xbb\xbf")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	var all []parsed
	var name string
	var data []string
	for _, line := range append(strings.Split(stream, "\n"), "") {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data != nil {
				all = append(all, parsed{name, strings.Join(data, "\n")})
			}
			name, data = "", nil
		case field == "data":
			data = append(data, value)
		case field == "event":
			name = value
		}
	}
	return all
}
