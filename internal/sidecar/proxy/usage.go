package proxy

import (
	"bytes"
	"errors"
	"io"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
)

// usage is what an engine reports of one answer. Tokens are -1 where nothing was said.
type usage struct {
	prompt, cached, written, written1h, output, total int
	// apart says that what was cached and written is not counted in prompt, as in Anthropic's form.
	apart bool
}

// whole returns the tokens of the whole prompt.
func (u usage) whole() int {
	if !u.apart || u.prompt < 0 {
		return u.prompt
	}
	return u.prompt + max(u.cached, 0) + max(u.written, 0)
}

var unknown = usage{prompt: -1, cached: -1, written: -1, written1h: -1, output: -1, total: -1}

// counts are what the engine reports as a provider's accounts take it.
func (u usage) counts() cloudcache.Usage {
	return cloudcache.Usage{Prompt: u.prompt, Read: u.cached, Written: u.written, Written1h: u.written1h, Output: u.output}
}

// watcher passes an answer on and remembers its ends, where the usage stands. done is called once, when the
// answer has ended or was broken off.
type watcher struct {
	io.ReadCloser
	head, tail []byte
	also       io.Writer          // gets the whole answer, too; nil: none
	first      func()             // at the first byte; nil: was called
	done       func(usage, error) // nil: was called
}

// ends is how many bytes are remembered of each end.
const ends = 16 << 10

func (w *watcher) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 && w.first != nil {
		w.first()
		w.first = nil
	}
	w.keep(p[:n])
	if w.also != nil {
		_, _ = w.also.Write(p[:n])
	}
	if err != nil {
		w.end(err)
	}
	return n, err
}

func (w *watcher) keep(p []byte) {
	if room := ends - len(w.head); room > 0 {
		n := min(room, len(p))
		w.head = append(w.head, p[:n]...)
		p = p[n:]
	}
	if len(p) == 0 {
		return
	}
	if len(p) >= ends {
		w.tail = append(w.tail[:0], p[len(p)-ends:]...)
		return
	}
	if over := len(w.tail) + len(p) - 2*ends; over > 0 { // moved seldom: the tail may grow to twice its length
		n := copy(w.tail, w.tail[len(w.tail)-ends:])
		w.tail = w.tail[:n]
	}
	w.tail = append(w.tail, p...)
}

// Close ends the answer, too: the client may have left.
func (w *watcher) Close() error {
	err := w.ReadCloser.Close()
	w.end(io.ErrUnexpectedEOF)
	return err
}

func (w *watcher) end(err error) {
	if w.done == nil {
		return
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	done := w.done
	w.done = nil
	done(findUsage(w.head, w.tail), err)
}

// findUsage looks for the last usage of an answer; Anthropic's streams say in the first one what was cached.
func findUsage(head, tail []byte) usage {
	all := append(bytes.Clone(head), tail...)
	u := readUsage(all, bytes.LastIndex(all, usageKey))
	if first := bytes.Index(all, usageKey); first >= 0 && u.cached < 0 {
		f := readUsage(all, first)
		u.prompt, u.cached, u.written = max(u.prompt, f.prompt), f.cached, f.written
		u.written1h, u.apart = f.written1h, f.apart
	}
	return u
}

var usageKey = []byte(`"usage"`)

func readUsage(all []byte, at int) usage {
	if at < 0 {
		return unknown
	}
	rest := bytes.TrimLeft(all[at+len(usageKey):], " \t\r\n")
	if len(rest) == 0 || rest[0] != ':' {
		return unknown
	}
	v := gjson.ParseBytes(rest[1:])
	if !v.IsObject() {
		return unknown
	}
	number := func(paths ...string) int {
		for _, p := range paths {
			if r := v.Get(p); r.Type == gjson.Number && r.Num >= 0 && r.Num <= maxTokens {
				return int(r.Num)
			}
		}
		return -1
	}
	u := usage{
		prompt:  number("prompt_tokens", "input_tokens"),
		output:  number("completion_tokens", "output_tokens"),
		total:   number("total_tokens"),
		cached:  number("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens"),
		written: number("cache_creation_input_tokens"), written1h: number("cache_creation.ephemeral_1h_input_tokens"),
	}
	if u.cached < 0 {
		u.cached = number("cache_read_input_tokens")
		u.apart = u.cached >= 0 || u.written >= 0
	}
	return u
}

// maxTokens is the most that is believed of an answer.
const maxTokens = 1 << 31
