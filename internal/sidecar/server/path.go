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
	simple = unescapeUnreserved(joinSlashes(raw))
	if _, err := url.PathUnescape(simple); err != nil || !strings.HasPrefix(simple, "/") || !safePath(simple) {
		return "", false
	}
	return simple, true
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

// unescapeUnreserved decodes what needs no escape: letters, digits and -._~.
func unescapeUnreserved(raw string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(raw, "%")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		if len(after) < 2 {
			return b.String() + "%" + after
		}
		c, err := strconv.ParseUint(after[:2], 16, 8)
		if err == nil && isUnreserved(byte(c)) {
			b.WriteByte(byte(c))
		} else {
			b.WriteString("%" + after[:2])
		}
		raw = after[2:]
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
