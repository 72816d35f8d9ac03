package repeat_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/prompt/repeat"
)

// maxConversation is the number of lines that are looked at, as documented.
const maxConversation = 1 << 20

// The text that makes a conversation too long stays and is not referred to; those that still fit are treated as ever.
func TestConversationIsBounded(t *testing.T) {
	fill := strings.Repeat("\n", maxConversation-1-90)
	a, b := file("a", 0, 90), file("b", 0, 90)
	full := repeat.Replace([]repeat.Text{tool(1, fill), tool(2, a), tool(3, a)}, 0)
	if full.Texts[2] != a {
		t.Error("the text that makes it too long was shortened")
	}
	fits := repeat.Replace([]repeat.Text{tool(1, fill[90:]), tool(2, a), tool(3, b+"\n"+b), tool(4, a), tool(5, b)}, 0)
	if fits.Texts[3] == a || fits.Texts[2] != b+"\n"+b || fits.Texts[4] != b {
		t.Errorf("changed: %v", changed([]repeat.Text{tool(1, fill[90:]), tool(2, a), tool(3, b+"\n"+b), tool(4, a), tool(5, b)}, fits))
	}
	long := strings.Repeat("\n", maxConversation)
	alone := repeat.Replace([]repeat.Text{tool(1, long), tool(2, a), tool(3, a)}, 0)
	if alone.Texts[2] == a {
		t.Error("a text that was not looked at counts")
	}
	inJSON := quoted(t, map[string]string{"content": long + a})
	if out := repeat.Replace([]repeat.Text{tool(1, a), tool(2, inJSON)}, 0); out.Texts[1] != inJSON {
		t.Error("lines inside JSON were not counted")
	}
}

// What is known of earlier turns carries the lines that were looked at, so a turn comes out the same whether or not they
// were planned before.
func TestBoundOfTurns(t *testing.T) {
	fill, a := strings.Repeat("\n", maxConversation-1-90), file("a", 0, 90)
	var first, second repeat.Memory
	for _, x := range []repeat.Text{tool(1, fill), tool(2, a)} {
		shorten(t, &first, x)
	}
	second.Know(first.Fresh())
	if out := shorten(t, &second, tool(3, a)); out != a {
		t.Error("the lines of earlier turns do not count")
	}
}

func shorten(t *testing.T, m *repeat.Memory, x repeat.Text) string {
	t.Helper()
	var r repeat.Result
	out, err := m.Shorten(t.Context(), x, 0, &r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A body of nothing but short lines takes less memory than its own length, in one text and in many.
func TestShortLinesTakeLittleMemory(t *testing.T) {
	text := strings.Repeat("x\n", 15<<20)
	for _, texts := range [][]repeat.Text{{tool(1, text)}, parts(text, 40), {tool(1, quoted(t,
		map[string]string{"content": text[:len(text)/2]}))}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		repeat.Replace(texts, 0)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 2*uint64(len(text)) {
			t.Errorf("%d texts: %d MiB for %d MiB", len(texts), took>>20, len(text)>>20)
		}
	}
}

// A context that has ended stops the work; what was found until then is not given out.
func TestShortenStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var m repeat.Memory
	var r repeat.Result
	if _, err := m.Shorten(ctx, tool(1, file("a", 0, 100_000)), 0, &r); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if r.BlocksTotal > 1000 {
		t.Errorf("%d blocks were looked at", r.BlocksTotal)
	}
}
