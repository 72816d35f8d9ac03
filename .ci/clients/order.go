package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// near is how much more or less of a prompt may be shared for a request to be as good as another: less than engines cache by.
const near = 64

// linear writes a body in the order in which engines read it: what the scope is, tools, system text, messages. It knows nothing of
// templates; it is good enough to say which of several requests shares the most.
func linear(body []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, name := range []string{
		"tools", "system", "systemInstruction", "instructions", "messages", "input", "contents",
	} {
		b.Write(bytes.TrimRight(fields[name], "]}"))
	}
	return b.Bytes(), nil
}

func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// also fills in the requests that share as much as the one of the label. It fails if another shares more: the label is wrong.
func also(r *Recorded) error {
	var lines [][]byte
	for _, b := range r.Bodies {
		l, err := linear(b)
		if err != nil {
			return err
		}
		lines = append(lines, l)
	}
	want := make([]Label, len(r.Want))
	for i, w := range r.Want {
		if w.Line > len(lines) || w.Against >= w.Line || w.Against < 1 {
			return fmt.Errorf("case %s: a label names line %d against %d, and there are %d", r.Name, w.Line, w.Against, len(lines))
		}
		of := func(n int) int { return common(lines[w.Line-1], lines[n-1]) }
		best := of(w.Against)
		for n := 1; n < w.Line; n++ {
			switch got := of(n); {
			case n == w.Against || got < best-near || got < best*3/4 || got >= len(lines[n-1])-1: // a request that goes on is not found
			case got > best+near:
				return fmt.Errorf("case %s: line %d shares %d bytes with line %d, and %d with line %d of the label", r.Name, w.Line, got, n, best,
					w.Against)
			default:
				w.Also = append(w.Also, n)
			}
		}
		want[i] = w
	}
	r.Want = want
	return nil
}
