package conversation_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/conversation"
)

// summed are messages whose sums are known, as a front end has them of their bytes.
type summed struct {
	messages
	sums []conversation.Sum
}

func (s summed) Sum(i int) conversation.Sum { return s.sums[i] }

func sum(m messages) summed {
	s := summed{messages: m}
	for i := range m {
		s.sums = append(s.sums, xxh3.HashString128(fmt.Sprint(m[i])))
	}
	return s
}

// agent is a conversation of about n messages in which every third is a result of five documents, two of which stand further up.
func agent(n int) messages {
	m := messages{said(conversation.System, "Be brief. "+tags(paper(0), paper(1), paper(2)))}
	for i := 0; len(m) < n; i += 3 {
		id := fmt.Sprint("c", i)
		m = append(m, said(conversation.User, fmt.Sprint("question ", i)), calls(id, "search"), result(id, tags(paper(i+5), paper(i+6),
			paper(i+7), paper(i+3), paper(i/2))))
	}
	return m
}

func paper(i int) string {
	return fmt.Sprintf("Paper %d. ", i) + strings.Repeat(fmt.Sprintf("What number %d says is of no importance here. ", i), 9)
}

// BenchmarkBegin is the growth of what one request costs with the length of its conversation: cold, where nothing of it is remembered, and
// warm, where all but the last two messages are.
func BenchmarkBegin(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		all := sum(agent(n))
		size := 0
		for _, m := range all.messages {
			for _, x := range m.Texts {
				size += len(x.Value)
			}
		}
		b.Run(fmt.Sprint("cold/", len(all.messages)), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				e := newEngine(b, nil)
				b.StartTimer()
				begin(b, e, looked, all)
			}
		})
		b.Run(fmt.Sprint("warm/", len(all.messages)), func(b *testing.B) {
			e, before := newEngine(b, nil), all
			before.messages = all.messages[:len(all.messages)-2]
			begin(b, e, looked, before)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				next := all
				next.sums = append([]conversation.Sum(nil), all.sums...)
				next.sums[len(next.sums)-1].Lo += uint64(i)
				begin(b, e, looked, next)
			}
		})
	}
}

// BenchmarkEqualDocuments is the worst that a client may send in one body: nothing but equal documents, each of which is compared.
func BenchmarkEqualDocuments(b *testing.B) {
	many := func(n int, doc string) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = doc
		}
		return out
	}
	for _, n := range []int{4, 16, 64} {
		for name, text := range map[string]string{
			"tags":   tags(many(4000, "equal")...),
			"blocks": strings.Repeat(own("P", "equal"), 4000),
			"long":   tags(many(20, strings.Repeat("a long one that is equal ", 1000))...),
			"rows":   tags(many(100, listing(0, 30))...),
		} {
			m := messages{said(conversation.User, "q")}
			for i := range n {
				m = append(m, result(fmt.Sprint("c", i), text))
			}
			all := sum(m)
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(n * len(text)))
				b.ReportAllocs()
				for b.Loop() {
					begin(b, newEngine(b, nil), looked, all)
				}
			})
		}
	}
}

func begin(b *testing.B, e *conversation.Engine, c conversation.Conversation, m conversation.Source) {
	b.Helper()
	turn, err := e.Begin(context.Background(), c, m)
	if err != nil {
		b.Fatal(err)
	}
	turn.Done(conversation.Outcome{Cached: -1})
}
