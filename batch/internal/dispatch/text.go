package dispatch

import (
	"strings"

	"github.com/ragpilot/ragpilot/engines"
)

// inFront names the members of a request's body that engines put in front of the messages, or that part caches: requests that differ in
// one share no prefix.
var inFront = [...]string{"cache_salt", "chat_template_kwargs", "lora", "tools"}

// flatten returns a request as one text, in the order in which an engine computes it. Parts are kept apart by a zero byte.
func flatten(r engines.Request) string {
	size := len(r.Model) + 1
	for _, name := range inFront {
		size += len(r.Extra[name]) + 1
	}
	for _, m := range r.Messages {
		size += len(m.Role) + len(m.Content) + 2
	}
	var b strings.Builder
	b.Grow(size)
	add := func(part string) {
		b.WriteString(part)
		b.WriteByte(0)
	}
	add(r.Model)
	for _, name := range inFront {
		add(string(r.Extra[name]))
	}
	for _, m := range r.Messages {
		add(string(m.Role))
		add(m.Content)
	}
	return b.String()
}

// promptBytes returns the length of a request's messages.
func promptBytes(r engines.Request) int {
	n := 0
	for _, m := range r.Messages {
		n += len(m.Content)
	}
	return n
}

// common returns the number of bytes that a and b have in common at the beginning.
func common(a, b string) int {
	n, most, step := 0, min(len(a), len(b)), 1024
	for step > 0 {
		for n+step <= most && a[n:n+step] == b[n:n+step] {
			n += step
		}
		step /= 4
	}
	return n
}
