package cachewatch

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// mostBuffered is the length in bytes up to which an answer of known length is read before it is passed on, so that it keeps
// having a length.
const mostBuffered = 32 << 20

// filter takes out of an answer what the proxy has asked for, and reads the prompt's tokens in it.
func (p *prompt) filter(resp *http.Response) {
	s := &stripper{ReadCloser: resp.Body, keep: p.theirs, learned: p.learned}
	stream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	if stream || resp.ContentLength < 0 || resp.ContentLength > mostBuffered { // how long it will be is not known
		resp.Body, resp.ContentLength = s, -1
		resp.Header.Del("Content-Length")
		return
	}
	text, err := io.ReadAll(s)
	_ = s.Close()
	if err != nil { // what has come is passed on, and then what has happened
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text), failing{err}))
		return
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	resp.Header.Set("Content-Length", strconv.Itoa(len(text)))
}

// failing is an answer that breaks off.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// stripper puts null in place of the lists of token numbers in an answer, which is what the engine writes there if they were not
// asked for. It looks for the members' names as engines write them, without spaces: a quotation mark that is not escaped,
// the name, and another one stand nowhere else in JSON.
type stripper struct {
	io.ReadCloser
	keep    bool           // only look
	learned func([]uint32) // is given the prompt's tokens

	buf   []byte // read, not looked at
	out   []byte // to be passed on
	list  []byte // the numbers read so far
	where place
	done  bool // learned was called
	err   error
}

// place is where the stripper stands.
type place uint8

const (
	outside  place = iota
	inPrompt       // in the list of the prompt's tokens
	inOutput       // in one of tokens of the answer
)

var (
	promptTokens = []byte(`"prompt_token_ids":[`)
	outputTokens = []byte(`"token_ids":[`)
)

// Bounds of a prompt's tokens.
const (
	maxPrompt = 4 << 20
	readSize  = 16 << 10
)

func (s *stripper) Read(p []byte) (int, error) {
	for len(s.out) == 0 && s.err == nil {
		s.fill()
	}
	if len(s.out) > 0 {
		n := copy(p, s.out)
		s.out = s.out[n:]
		return n, nil
	}
	return 0, s.err
}

// fill reads once and looks at what has come.
func (s *stripper) fill() {
	s.buf = slices.Grow(s.buf, readSize)
	n, err := s.ReadCloser.Read(s.buf[len(s.buf) : len(s.buf)+readSize])
	s.buf = s.buf[:len(s.buf)+n]
	s.out = s.out[:0]
	for s.step(err != nil) {
		continue
	}
	s.err = err
}

// step passes on what is before the next list, or reads on in one. False: it needs more.
func (s *stripper) step(last bool) bool {
	if s.where != outside {
		return s.inside(last)
	}
	at, name, where := s.next()
	if at < 0 {
		hold := 0
		if !last {
			hold = max(partial(s.buf, promptTokens), partial(s.buf, outputTokens))
		}
		s.pass(len(s.buf) - hold)
		return false
	}
	s.pass(at + len(name) - 1) // without the bracket
	s.where, s.list = where, s.list[:0]
	return true
}

// next finds the next list.
func (s *stripper) next() (at int, name []byte, where place) {
	i, j := bytes.Index(s.buf, promptTokens), bytes.Index(s.buf, outputTokens)
	if i >= 0 && (j < 0 || i < j) {
		return i, promptTokens, inPrompt
	}
	return j, outputTokens, inOutput
}

// inside reads the numbers of a list, which begins with its bracket or goes on. Something else than numbers passes as it is.
func (s *stripper) inside(last bool) bool {
	n := 0
	if len(s.list) == 0 && len(s.buf) > 0 {
		n = 1 // the bracket
	}
	for n < len(s.buf) && isList(s.buf[n]) {
		n++
	}
	s.list = append(s.list, s.buf[:n]...)
	s.buf = s.buf[:copy(s.buf, s.buf[n:])]
	switch {
	case len(s.buf) > 0 && s.buf[0] == ']':
		s.list = append(s.list, ']')
		s.buf = s.buf[:copy(s.buf, s.buf[1:])]
		s.ended()
		return true
	case len(s.buf) > 0 || last || len(s.list) > 8*maxPrompt: // no list of numbers, or no end
		s.flush()
		return len(s.buf) > 0
	}
	return false
}

func isList(c byte) bool {
	return '0' <= c && c <= '9' || c == ',' || c == ' ' || c == '-'
}

// ended takes a whole list.
func (s *stripper) ended() {
	if s.where == inPrompt && !s.done {
		s.done = true
		if tokens := numbers(s.list); len(tokens) > 0 {
			s.learned(tokens)
		}
	}
	if s.keep {
		s.flush()
		return
	}
	s.out = append(s.out, "null"...)
	s.where = outside
}

// flush passes on a list as it came.
func (s *stripper) flush() {
	s.out = append(s.out, s.list...)
	s.list, s.where = s.list[:0], outside
}

// pass passes n bytes on.
func (s *stripper) pass(n int) {
	s.out = append(s.out, s.buf[:n]...)
	s.buf = s.buf[:copy(s.buf, s.buf[n:])]
}

// partial is how many of the last bytes may be the beginning of a name.
func partial(text, name []byte) int {
	for n := min(len(text), len(name)-1); n > 0; n-- {
		if bytes.HasSuffix(text, name[:n]) {
			return n
		}
	}
	return 0
}

// numbers reads [1,2,3]; nil if something is no token.
func numbers(list []byte) []uint32 {
	list = bytes.TrimSuffix(bytes.TrimPrefix(list, []byte("[")), []byte("]"))
	tokens := make([]uint32, 0, bytes.Count(list, []byte(","))+1)
	for one := range bytes.SplitSeq(list, []byte(",")) {
		n, err := strconv.ParseUint(string(bytes.TrimSpace(one)), 10, 32)
		if err != nil {
			return nil
		}
		tokens = append(tokens, uint32(n))
	}
	return tokens
}
