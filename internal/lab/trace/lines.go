package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// lines gives the lines of a file one at a time and puts "name:line: " in front of errors. It never asks the
// underlying reader for more once it holds a whole line, so that a caller on a pipe can answer line i before
// line i+1 exists.
type lines struct {
	name string
	r    *bufio.Reader
	n    int    // number of the line given last, from 1
	buf  []byte // holds a line longer than r's buffer
	err  error  // sticky
	own  []io.Closer
}

const bufferBytes = 64 << 10

func newLines(r io.Reader, name string) *lines {
	return &lines{name: name, r: bufio.NewReaderSize(r, bufferBytes)}
}

// openLines opens path: "-" is standard input, which close leaves open. What begins as a gzip file is unpacked, and
// what is called ".gz" must be one. It waits for the first two bytes.
func openLines(path string) (*lines, error) {
	if path == "-" {
		return unpackedLines(os.Stdin, "standard input", false)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err // names the path already
	}
	l, err := unpackedLines(f, path, strings.HasSuffix(path, ".gz"))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l.own = append(l.own, f)
	return l, nil
}

// unpackedLines reads r, through gzip if it begins so; packed: it has to.
func unpackedLines(r io.Reader, name string, packed bool) (*lines, error) {
	b := bufio.NewReaderSize(r, bufferBytes)
	if magic, _ := b.Peek(2); !packed && string(magic) != "\x1f\x8b" {
		return &lines{name: name, r: b}, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("%s: not a gzip file: %w", name, err)
	}
	l := newLines(z, name)
	l.own = []io.Closer{z}
	return l, nil
}

func (l *lines) close() error {
	var err error
	for _, c := range l.own {
		err = errors.Join(err, c.Close())
	}
	l.own = nil
	if l.err == nil {
		l.err = fmt.Errorf("%s: read after close", l.name)
	}
	return err
}

// next returns the next line that is not blank, without white space around it, valid until the next call; io.EOF
// at the end. Any error is final.
func (l *lines) next() ([]byte, error) {
	for l.err == nil {
		raw, err := l.whole()
		if len(raw) > 0 || err == nil {
			l.n++
		}
		if err != nil && !errors.Is(err, io.EOF) {
			l.n = max(l.n, 1)
			return nil, l.fail(err)
		}
		if line := bytes.TrimSpace(raw); len(line) > 0 {
			if !utf8.Valid(line) {
				return nil, l.fail(errors.New("line is not valid UTF-8"))
			}
			if l.n == 1 && bytes.HasPrefix(line, []byte("\xef\xbb\xbf")) {
				return nil, l.fail(errors.New("file starts with a byte order mark, want plain UTF-8"))
			}
			return line, nil
		}
		l.err = err
	}
	return nil, l.err
}

// whole reads up to and including the next line end, however far away it is.
func (l *lines) whole() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.buf) == 0 && !errors.Is(err, bufio.ErrBufferFull) {
			return part, err // the usual case, no copy
		}
		l.buf = append(l.buf, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.buf, err
		}
	}
}

// fail makes err, with the place it happened at, the reader's final error.
func (l *lines) fail(err error) error {
	l.err = fmt.Errorf("%s:%d: %w", l.name, l.n, err)
	return l.err
}

// nextObject reads the object on the next line as parse does.
func nextObject[T any](l *lines, parse func(*members) T) (value T, err error) {
	line, err := l.next()
	if err != nil {
		return value, err
	}
	m, err := parseObject(line)
	if err != nil {
		return value, l.fail(err)
	}
	if value = parse(m); m.fault != nil {
		var none T
		return none, l.fail(m.fault)
	}
	return value, nil
}

// members are those of one line's object, not yet decoded. A map is used rather than a struct because encoding/json
// would match struct fields in any letter case, and because IDs may be strings or numbers. The first fault is kept; what is
// read after it is empty.
type members struct {
	all      map[string]json.RawMessage
	what, id string // of the object, for faults; empty: not known yet
	fault    error
}

func parseObject(line []byte) (*members, error) {
	m := &members{}
	err := json.Unmarshal(line, &m.all)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, fmt.Errorf("broken JSON at byte %d: %w", syntax.Offset, err)
	}
	if err != nil || m.all == nil { // a valid value, but not an object
		return nil, fmt.Errorf("want a JSON object, found %s", kind(line))
	}
	return m, nil
}

// fail keeps the first fault.
func (m *members) fail(format string, args ...any) {
	if m.fault != nil {
		return
	}
	if m.fault = fmt.Errorf(format, args...); m.what != "" {
		m.fault = fmt.Errorf("%s %q: %w", m.what, m.id, m.fault)
	}
}

// kind names the type of a JSON value for messages.
func kind(raw []byte) string {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return "nothing"
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "a list"
	case raw[0] == '"':
		return "a string"
	case raw[0] == 't' || raw[0] == 'f':
		return "a boolean"
	case raw[0] == 'n':
		return "null"
	}
	return "a number"
}

// name reads the ID of what the object is, "request" or "block"; faults of other members name it.
func (m *members) name(what string) string {
	id := m.member("id")
	m.what, m.id = what, id
	return id
}

// member returns an ID that must be there.
func (m *members) member(name string) string {
	raw, ok := m.all[name]
	if !ok {
		m.fail("%q is missing", name)
		return ""
	}
	return m.parseID(name, raw)
}

// text returns a string member that must be there.
func (m *members) text(name string) string {
	raw, ok := m.all[name]
	switch {
	case !ok:
		m.fail("%q is missing", name)
	case kind(raw) == "null":
		m.fail("%q is null, want a string", name)
	}
	return m.optionalText(name)
}

// optionalText returns a string member, "" when it is missing or null.
func (m *members) optionalText(name string) (s string) {
	raw, ok := m.all[name]
	if ok && kind(raw) != "null" && json.Unmarshal(raw, &s) != nil {
		m.fail("%q is %s, want a string", name, kind(raw))
	}
	return s
}

// texts returns an object of strings, nil when it is missing or null.
func (m *members) texts(name string) (texts map[string]string) {
	raw, ok := m.all[name]
	if ok && kind(raw) != "null" && (kind(raw) != "an object" || json.Unmarshal(raw, &texts) != nil) {
		m.fail("%q is %s, want an object of strings", name, kind(raw))
	}
	return texts
}

// ids returns a list of IDs; a missing or null list is a fault if required, else empty.
func (m *members) ids(name string, required bool) []string {
	raw, ok := m.all[name]
	if !required && (!ok || kind(raw) == "null") {
		return nil
	}
	var list []json.RawMessage
	switch {
	case !ok:
		m.fail("%q is missing", name)
	case kind(raw) != "a list" || json.Unmarshal(raw, &list) != nil:
		m.fail("%q is %s, want a list of IDs", name, kind(raw))
	}
	out := make([]string, len(list))
	for i, raw := range list {
		out[i] = m.parseID(fmt.Sprintf("%s[%d]", name, i), raw)
	}
	return out
}

// turn returns the member "turn", missing if there is none: an integer, possibly written as a string.
func (m *members) turn(missing int) int {
	raw, ok := m.all["turn"]
	if !ok {
		return missing
	}
	n, err := strconv.Atoi(strings.Trim(string(raw), `"`))
	if err != nil {
		m.fail("\"turn\" is %.40s, want an integer", raw)
	}
	return n
}

// session returns the member "session", missing if there is none.
func (m *members) session(missing string) string {
	if _, ok := m.all["session"]; !ok {
		return missing
	}
	return m.member("session")
}

func (m *members) parseID(name string, raw json.RawMessage) (id string) {
	switch kind(raw) {
	case "a string":
		if err := json.Unmarshal(raw, &id); err != nil {
			m.fail("%q: %w", name, err)
		}
	case "a number":
		id = pythonStr(string(raw))
	default:
		m.fail("%q is %s, want a string or a number", name, kind(raw))
	}
	return id
}

// pythonStr returns a JSON number as str(json.loads(number)) prints it in Python: 7 is the same ID as "7", and 7.0
// is another one.
func pythonStr(number string) string {
	if !strings.ContainsAny(number, ".eE") {
		if number == "-0" {
			return "0"
		}
		return number // integers have no size limit there
	}
	f, err := strconv.ParseFloat(number, 64)
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case err != nil:
		return number // not reached: number was checked as JSON
	}
	// repr: the shortest digits that read back, with an exponent below 1e-4 and from 1e16 on.
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// repeated returns the first ID that occurs twice in the lists taken together.
func repeated(lists ...[]string) (string, bool) {
	n := 0
	for _, l := range lists {
		n += len(l)
	}
	seen := make(map[string]struct{}, n)
	for _, l := range lists {
		for _, id := range l {
			if _, ok := seen[id]; ok {
				return id, true
			}
			seen[id] = struct{}{}
		}
	}
	return "", false
}
