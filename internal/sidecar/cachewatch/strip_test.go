package cachewatch

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// pieces reads a text in pieces of given lengths.
type pieces struct {
	rest  []byte
	sizes []int
}

func (p *pieces) Read(to []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := len(p.rest)
	if len(p.sizes) > 0 {
		n, p.sizes = min(n, max(p.sizes[0], 1)), p.sizes[1:]
	}
	n = copy(to, p.rest[:n])
	p.rest = p.rest[n:]
	return n, nil
}

func (*pieces) Close() error { return nil }

// strip passes a text through a stripper.
func strip(text string, keep bool, sizes ...int) (out string, tokens []uint32, err error) {
	s := &stripper{ReadCloser: &pieces{[]byte(text), sizes}, keep: keep, learned: func(t []uint32) { tokens = t }}
	all, err := io.ReadAll(s)
	return string(all), tokens, err
}

func TestStrip(t *testing.T) {
	for name, c := range map[string]struct {
		in, want string
		tokens   []uint32
	}{
		"nothing": {`{"id":"x","choices":[]}`, `{"id":"x","choices":[]}`, nil},
		"empty":   {``, ``, nil},
		"a chat": {
			`{"choices":[{"index":0,"token_ids":[5,6]}],"prompt_token_ids":[1,2,3],"kv":null}`,
			`{"choices":[{"index":0,"token_ids":null}],"prompt_token_ids":null,"kv":null}`,
			[]uint32{1, 2, 3},
		},
		"none was given": {`{"prompt_token_ids":null,"token_ids":null}`, `{"prompt_token_ids":null,"token_ids":null}`, nil},
		"empty lists":    {`{"token_ids":[],"prompt_token_ids":[]}`, `{"token_ids":null,"prompt_token_ids":null}`, nil},
		"a stream": {
			"data: {\"prompt_token_ids\":[7]}\n\ndata: {\"token_ids\":[8]}\n\ndata: [DONE]\n\n",
			"data: {\"prompt_token_ids\":null}\n\ndata: {\"token_ids\":null}\n\ndata: [DONE]\n\n",
			[]uint32{7},
		},
		"a text about it": {
			`{"content":"\"token_ids\":[1] and \"prompt_token_ids\":[2]"}`, `{"content":"\"token_ids\":[1] and \"prompt_token_ids\":[2]"}`,
			nil,
		},
		"other lists": {`{"token_ids":[[1,2],[3]],"token_ids":["a"]}`, `{"token_ids":[[1,2],[3]],"token_ids":["a"]}`, nil},
		"broken off":  {`{"prompt_token_ids":[1,2`, `{"prompt_token_ids":[1,2`, nil},
		"in the name": {`{"prompt_token_i`, `{"prompt_token_i`, nil},
		"no number":   {`{"prompt_token_ids":[1,-2]}`, `{"prompt_token_ids":null}`, nil},
		"the first only": {
			`{"prompt_token_ids":[1]}{"prompt_token_ids":[2]}`, `{"prompt_token_ids":null}{"prompt_token_ids":null}`, []uint32{1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, sizes := range [][]int{nil, slices.Repeat([]int{1}, len(c.in)), slices.Repeat([]int{3}, len(c.in))} {
				got, tokens, err := strip(c.in, false, sizes...)
				if got != c.want || !slices.Equal(tokens, c.tokens) || err != nil {
					t.Errorf("%q, %v, %v; want %q, %v", got, tokens, err, c.want, c.tokens)
				}
				if got, tokens, _ = strip(c.in, true, sizes...); got != c.in || !slices.Equal(tokens, c.tokens) {
					t.Errorf("kept: %q, %v", got, tokens)
				}
			}
		})
	}
}

// However an answer arrives, it passes as if tokens had not been asked for.
func TestStripAnyPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{
			`"prompt_token_ids":[1,2,30]`, `"token_ids":[9]`, `,`, `"`, `{`, `"prompt_token_ids":`, `[`, `]`, `\"token_ids\":[4]`, "data: ",
			"\n\n", `"token_ids":null`, `7`, strings.Repeat("x", 20_000),
		})).Draw(t, "parts")
		text := strings.Join(parts, "")
		want, tokens, err := strip(text, false)
		got, again, err2 := strip(text, false, rapid.SliceOf(rapid.IntRange(1, 40)).Draw(t, "sizes")...)
		if got != want || !slices.Equal(tokens, again) || err != nil || err2 != nil {
			t.Fatalf("in pieces %q, %v; at once %q, %v", got, again, want, tokens)
		}
		if kept, _, _ := strip(text, true); kept != text {
			t.Fatalf("kept %q", kept)
		}
	})
}

// A streamed answer is passed on as it comes: nothing that can be is held back.
func TestStripDoesNotWait(t *testing.T) {
	r, w := io.Pipe()
	s := &stripper{ReadCloser: r, learned: func([]uint32) {}}
	buf := make([]byte, 1<<10)
	for _, piece := range []string{"data: {\"a\":1,\"token_ids\":[1]}\n\n", "data: {\"a\":2}\n\n"} {
		go func() { _, _ = w.Write([]byte(piece)) }()
		var got []byte
		for want := strings.ReplaceAll(piece, "[1]", "null"); string(got) != want; {
			n, err := s.Read(buf)
			if got = append(got, buf[:n]...); err != nil || !strings.HasPrefix(want, string(got)) {
				t.Fatalf("%q, %v", got, err)
			}
		}
	}
	_ = w.Close()
}

// An answer of known length keeps having one, and one that breaks off breaks off for the client, too.
func TestFilterLength(t *testing.T) {
	const in, want = `{"prompt_token_ids":[1,2,3]}`, `{"prompt_token_ids":null}`
	p := &prompt{placed: placed{}, fleet: newFleet(newFollower(t, Options{}), []Engine{{BlockSize: 16}})}
	resp := &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Length": {"28"}}, ContentLength: int64(len(in)),
		Body: io.NopCloser(strings.NewReader(in)),
	}
	p.Answer(resp)
	got, err := io.ReadAll(resp.Body)
	if string(got) != want || err != nil || resp.ContentLength != int64(len(want)) || resp.Header.Get("Content-Length") != "25" {
		t.Errorf("%q, %v, length %d, %v", got, err, resp.ContentLength, resp.Header)
	}
	resp = &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: 1000, Body: io.NopCloser(
			io.MultiReader(strings.NewReader("part"), iotest.ErrReader(io.ErrUnexpectedEOF)),
		),
	}
	p.Answer(resp)
	if got, err = io.ReadAll(resp.Body); string(got) != "part" || !errors.Is(err, io.ErrUnexpectedEOF) || resp.ContentLength != 1000 {
		t.Errorf("%q, %v, length %d", got, err, resp.ContentLength)
	}
}

// A stream that has a length is not shorter than it says when lists were taken out of it.
func TestFilterLengthOfAStream(t *testing.T) {
	const in, want = "data: {\"prompt_token_ids\":[1,2,3]}\n\n", "data: {\"prompt_token_ids\":null}\n\n"
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p := &prompt{fleet: newFleet(newFollower(t, Options{}), []Engine{{BlockSize: 16}})}
		resp := &http.Response{
			StatusCode: http.StatusOK, ContentLength: int64(len(in)), Body: io.NopCloser(strings.NewReader(in)),
			Header: http.Header{"Content-Type": {"text/event-stream"}, "Content-Length": {strconv.Itoa(len(in))}},
		}
		p.Answer(resp)
		if resp.ContentLength != -1 {
			t.Errorf("length %d", resp.ContentLength)
		}
		maps.Copy(w.Header(), resp.Header)
		_, _ = io.Copy(w, resp.Body)
	}))
	defer front.Close()
	req := testkit.Request(t, http.MethodGet, front.URL, http.NoBody)
	resp, err := front.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); string(got) != want || err != nil {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

func FuzzStrip(f *testing.F) {
	f.Add([]byte(`{"prompt_token_ids":[1,2],"choices":[{"token_ids":[3]}]}`), uint8(3))
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		want, _, _ := strip(string(text), false)
		got, _, err := strip(string(text), false, slices.Repeat([]int{int(size)}, len(text))...)
		if got != want || err != nil {
			t.Errorf("%q in pieces of %d: %q, %v; at once %q", text, size, got, err, want)
		}
		if kept, _, _ := strip(string(text), true); !bytes.Equal([]byte(kept), text) {
			t.Errorf("%q was kept as %q", text, kept)
		}
	})
}
