package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// Messages that pass as they came, and on which nothing depends, have no entry: however many there are, a request has one.
func TestPlainMessagesHaveNoEntry(t *testing.T) {
	b := budget.New(0)
	p := newProxy(t, newEngine(t), func(o *proxy.Options) { o.Transport, o.Memory = atOnce{}, b })
	tiny := func(n int) string {
		return `{"model":"m","messages":[{"role":"user","content":"q"}` + strings.Repeat(`,{"role":"user","content":"a"}`, n) + `]}`
	}
	send := func(body string) int64 {
		before := b.Held("")
		if w := post(p, chatPath, "", body); w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body)
		}
		return b.Held("") - before
	}
	one := send(tiny(0))
	for _, n := range []int{1, 1000, 1001} {
		if took := send(tiny(n)); took != one {
			t.Errorf("%d messages more take %d bytes, one alone %d", n, took, one)
		}
	}
	if took := send(tiny(1000)); took != 0 {
		t.Errorf("sent again they take %d bytes", took)
	}
}

type message = map[string]any

// Whatever is sent, in whatever order, and from wherever conversations go on: what was forwarded for a message is forwarded
// for it again.
func TestForwardedBytesNeverChange(t *testing.T) {
	e := newEngine(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := newProxy(t, e, nil)
		kinds := []func(n int) []message{
			func(n int) []message { return []message{{"role": "user", "content": fmt.Sprint("hi ", n%3)}} },
			func(n int) []message { return []message{{"role": "assistant", "content": fmt.Sprint("yes ", n%2)}} },
			func(n int) []message {
				return []message{{"role": "user", "content": listing(fmt.Sprint("f", n%2), 12)}}
			},
			func(n int) []message {
				return []message{{"role": "system", "content": docs("c", fmt.Sprint(n%3), "a", "b")}}
			},
			func(n int) []message { return called(n, docs(fmt.Sprint("k", n%2), "l", fmt.Sprint("m", n%3))) },
			func(n int) []message { return called(n, strings.Repeat(fmt.Sprint("result ", n%2, ". "), 12)) },
			func(n int) []message { return called(n, listing(fmt.Sprint("f", n%2), 30)) },
		}
		conversations := [][]message{nil}
		sent := map[string]string{} // by the messages up to one: what was forwarded for it
		post(p, chatPath, "", chat(docs("a", "b", "c"), "before"))
		for range rapid.IntRange(1, 12).Draw(rt, "requests") {
			from := rapid.SampledFrom(conversations).Draw(rt, "from")
			next := from[:rapid.IntRange(0, len(from)).Draw(rt, "back to"):len(from)]
			next = append([]message(nil), next...)
			for range rapid.IntRange(0, 4).Draw(rt, "more") {
				next = append(next, rapid.SampledFrom(kinds).Draw(rt, "kind")(rapid.IntRange(0, 5).Draw(rt, "which"))...)
			}
			if len(next) == 0 {
				continue
			}
			conversations = append(conversations, next)
			header := []string{proxy.SessionHeader, rapid.SampledFrom([]string{"", "one", "two"}).Draw(rt, "session")}
			body, _ := json.Marshal(message{"model": "m", "messages": next})
			if w := post(p, chatPath, "", string(body), header...); w.Code != http.StatusOK {
				rt.Fatal(w.Code, w.Body)
			}
			forwarded := contents(t, e.last())
			for i := range next {
				up, _ := json.Marshal(next[:i+1])
				if before, ok := sent[string(up)]; ok && before != forwarded[i] {
					rt.Fatalf("message %d became %q, was %q", i, forwarded[i], before)
				}
				sent[string(up)] = forwarded[i]
			}
		}
	})
}

// called is a tool call and its result.
func called(n int, result string) []message {
	id := fmt.Sprint("call", n)
	return []message{
		{"role": "assistant", "content": nil, "tool_calls": []message{
			{"id": id, "type": "function", "function": message{"name": "search", "arguments": "{}"}},
		}},
		{"role": "tool", "tool_call_id": id, "content": result},
	}
}
