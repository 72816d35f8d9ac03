package server

import (
	"encoding/base64"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// finder finds keys in texts. Keys of at least settings.MinKey characters are found wherever they stand, shorter ones only as whole words:
// they could be a part of anything. Never changed after it was made.
type finder struct {
	begins [1 << 16 / 64]uint64 // a bit for each pair of bytes that a key begins with: most texts are passed over by it
	keys   map[string][]string  // by their first settings.MinKey bytes
	short  map[string]bool
	names  map[string]bool // keys as net/http writes names of headers
}

func newFinder(keys []settings.Key) *finder {
	f := &finder{keys: map[string][]string{}, short: map[string]bool{}, names: map[string]bool{}}
	for _, key := range keys {
		k := key.Key.Reveal()
		f.names[textproto.CanonicalMIMEHeaderKey(k)] = true
		if len(k) < settings.MinKey {
			f.short[k] = true
			continue
		}
		pair := uint16(k[0])<<8 | uint16(k[1])
		f.begins[pair/64] |= 1 << (pair % 64)
		f.keys[k[:settings.MinKey]] = append(f.keys[k[:settings.MinKey]], k)
	}
	return f
}

// in reports whether a key stands in a text, as it is, in percent encoding, or in the user and password of Basic.
func (f *finder) in(text string) bool {
	if f.plain(text) {
		return true
	}
	for range maxDecodings {
		next := unescape(text, func(byte) bool { return true })
		if next == text {
			break
		}
		if text = next; f.plain(text) {
			return true
		}
	}
	scheme, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if !strings.EqualFold(scheme, "Basic") {
		return false
	}
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(rest), "="))
	return err == nil && f.plain(string(decoded))
}

// plain looks for keys in a text as it is.
func (f *finder) plain(text string) bool {
	if len(f.keys) > 0 {
		for i := 0; i+settings.MinKey <= len(text); i++ {
			pair := uint16(text[i])<<8 | uint16(text[i+1])
			if f.begins[pair/64]&(1<<(pair%64)) == 0 {
				continue
			}
			for _, k := range f.keys[text[i:i+settings.MinKey]] {
				if strings.HasPrefix(text[i:], k) {
					return true
				}
			}
		}
	}
	if len(f.short) == 0 {
		return false
	}
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("-_.~", c)
	}) {
		if f.short[word] {
			return true
		}
	}
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune(" \t,;:\"'&/", c) }) {
		_, named, _ := strings.Cut(word, "=")
		if f.short[word] || f.short[named] {
			return true
		}
	}
	return f.short[text]
}

// withhold takes our keys out of a request, wherever a client has put them: whole headers, cookies among them, and parameters
// of the query. A client may present two keys, or one in two places. Not ok: one stands in the path.
func (f *finder) withhold(r *http.Request) (ok bool) {
	for name, values := range r.Header {
		if f.names[name] || slices.ContainsFunc(values, f.in) {
			delete(r.Header, name)
		}
	}
	if r.URL.RawQuery != "" && (len(f.short) > 0 || f.in(r.URL.RawQuery)) {
		u := *r.URL
		parts := slices.DeleteFunc(strings.Split(u.RawQuery, "&"), func(part string) bool {
			name, value, _ := strings.Cut(part, "=")
			return f.in(part) || f.in(name) || f.in(value)
		})
		if u.RawQuery = strings.Join(parts, "&"); f.in(u.RawQuery) {
			u.RawQuery = "" // it stands across parameters
		}
		r.URL = &u
	}
	return !f.in(r.URL.EscapedPath())
}
