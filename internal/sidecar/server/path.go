package server

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// maxDecodings is how often a path is decoded to look for dot segments: gateways behind this server may decode it again.
const maxDecodings = 4

// straightened makes paths simple before anything looks at them: what is checked here must be what a gateway or an engine
// behind this server understands. Runs of slashes become one, and letters and digits are not escaped (RFC 3986, 6.2.2); dot
// segments, in whatever encoding, are 400. Methods that are for proxies are 405.
func (s *Server) straightened(next handle) handle {
	return func(a *answer, r *http.Request) {
		switch r.Method {
		case http.MethodConnect, http.MethodTrace, "TRACK":
			refuse(a, http.StatusMethodNotAllowed, "Method Not Allowed")
			return
		}
		was := r.URL.EscapedPath()
		raw, ok := straight(was)
		if !ok {
			refuse(a, http.StatusBadRequest, "Path "+shown(was)+": dot segments, backslashes and control characters are not allowed")
			return
		}
		if raw != was {
			u := *r.URL
			u.Path, _ = url.PathUnescape(raw) // straight has seen that it can be decoded
			u.RawPath = raw
			clean := new(http.Request)
			*clean = *r
			clean.URL = &u
			r = clean
		}
		next(a, r)
	}
}

// straight returns an escaped path in its simple form; not ok: it is refused.
func straight(raw string) (simple string, ok bool) {
	if plainPath(raw) {
		return raw, true
	}
	if _, err := url.PathUnescape(raw); err != nil {
		return "", false
	}
	simple = unescape(joinSlashes(raw), isUnreserved) // letters, digits and -._~ need no escape
	return simple, strings.HasPrefix(simple, "/") && safePath(simple)
}

// plainPath reports whether a path needs no closer look. Most do not.
func plainPath(raw string) bool {
	return strings.HasPrefix(raw, "/") && !strings.ContainsAny(raw, "%\\") && !strings.Contains(raw, "//") && !strings.Contains(raw, "/.")
}

func joinSlashes(raw string) string {
	for strings.Contains(raw, "//") {
		raw = strings.ReplaceAll(raw, "//", "/")
	}
	return raw
}

// unescape decodes once the percent escapes of those bytes that decode accepts; others stay, and so does a lone %.
func unescape(text string, decode func(byte) bool) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(text, "%")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		text = after
		if len(after) >= 2 {
			if c, err := strconv.ParseUint(after[:2], 16, 8); err == nil && decode(byte(c)) {
				b.WriteByte(byte(c))
				text = after[2:]
				continue
			}
		}
		b.WriteByte('%')
	}
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// safePath reports whether no decoding of a path has dot segments, backslashes or control characters.
func safePath(path string) bool {
	for range maxDecodings {
		if strings.ContainsFunc(path, func(c rune) bool { return c == '\\' || c < ' ' || c == 0x7f }) {
			return false
		}
		for part := range strings.SplitSeq(path, "/") {
			name, _, _ := strings.Cut(part, ";") // some servers take "..;x" for ".."
			if name == "." || name == ".." {
				return false
			}
		}
		next, err := url.PathUnescape(path)
		if err != nil || next == path {
			return true // a lone % stays one
		}
		path = next
	}
	return false
}
