package repeat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/prompt/repeat"
)

// BenchmarkReplace is the cost of one body: of one that agents send, of one long file that is read twice, and of the
// worst that clients may send, 60 MiB of lines of one character.
func BenchmarkReplace(b *testing.B) {
	var agent []repeat.Text
	for i := range 20 {
		agent = append(agent, tool(i, file(fmt.Sprint("f", i%12), 0, 300)))
	}
	long := file("long", 0, 100_000)
	short := strings.Repeat("x\n", 30<<20)
	for _, c := range []struct {
		name  string
		texts []repeat.Text
	}{
		{"20 results of 300 lines", agent},
		{"100,000 lines twice", []repeat.Text{tool(1, long), tool(2, long)}},
		{"100,000 lines of JSON twice", []repeat.Text{
			tool(1, quoted(b, map[string]string{"content": long})), tool(2, quoted(b, map[string]string{"content": long})),
		}},
		{"60 MiB of short lines", []repeat.Text{tool(1, short)}},
		{"60 MiB of short lines in 120 texts", parts(short, 120)},
	} {
		b.Run(c.name, func(b *testing.B) {
			size := 0
			for _, t := range c.texts {
				size += len(t.Text)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				repeat.Replace(c.texts, 0)
			}
		})
	}
}

// parts cuts a text into so many tool results.
func parts(text string, n int) []repeat.Text {
	out := make([]repeat.Text, n)
	for i := range out {
		out[i] = tool(i, text[len(text)/n*i:len(text)/n*(i+1)])
	}
	return out
}

// BenchmarkDistinct is a conversation of as many lines as are looked at, all of them new.
func BenchmarkDistinct(b *testing.B) {
	var w strings.Builder
	for i := range maxConversation - 1 {
		fmt.Fprintf(&w, "%x\n", i*7919)
	}
	texts := []repeat.Text{tool(1, w.String())}
	b.SetBytes(int64(w.Len()))
	b.ReportAllocs()
	for b.Loop() {
		repeat.Replace(texts, 0)
	}
}
