package proxy_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation/conversationtest"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// keeps is an engine that keeps the last body, a named fake.
type keeps struct{ went []byte }

func (k *keeps) RoundTrip(r *http.Request) (*http.Response, error) {
	k.went, _ = io.ReadAll(r.Body)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2, Request: r,
		ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// FuzzForwarded: whatever a body is, JSON stays JSON, nothing but texts and fences changes, and what the reader understands is not lost.
func FuzzForwarded(f *testing.F) {
	for i, d := range goldenDialects {
		talk := newTalking(diceOf(i, 77), newPieces(diceOf(i, 76)), d.path)
		for range 6 {
			f.Add(i, []byte(talk.next()))
		}
		for _, m := range [][]conversationtest.Message{readerMessages(conversationtest.Script())} {
			raw, err := json.Marshal(wires[d.name].write("m", m, false))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(i, raw)
		}
	}
	f.Add(0, []byte(
		`{"messages":[{"role":"tool","content":[{"type":"text","text":"— iden"},{"type":"x","identical to":"a previous tool result"}]}]}`,
	))
	f.Add(1, []byte(
		`{"system":[{"type":"text","text":"[1] \ud800 [2] b"}],"messages":[{"role":"user","content":[{"type":"tool_result",`+
			`"content":{"a":1}}]}]}`,
	))
	f.Add(2, []byte(
		`{"input":[{"type":"x_call_output","output":["identical to a previous tool result",{"type":"input_text","text":"x"}]}]}`,
	))
	f.Fuzz(forwardedWell)
}

// TestForwardedWell is FuzzForwarded for many bodies of made-up conversations.
func TestForwardedWell(t *testing.T) {
	n := 40
	if testing.Short() {
		n = 5
	}
	for i, d := range goldenDialects {
		t.Run(d.name, func(t *testing.T) {
			for k := range n {
				talk := newTalking(diceOf(i, 1000+k), newPieces(diceOf(i, 500+k)), d.path)
				for range 6 {
					forwardedWell(t, i, []byte(talk.next()))
				}
			}
		})
	}
}

func forwardedWell(t *testing.T, which int, came []byte) {
	t.Helper()
	d := goldenDialects[uint(which)%uint(len(goldenDialects))]
	pilot, err := contextpilot.New(
		contextpilot.Config{Dedup: contextpilot.DedupOff, Notes: contextpilot.Notes{Hint: contextpilot.HintNone}},
	)
	if err != nil {
		t.Fatal(err)
	}
	engine := &keeps{}
	p, err := proxy.New(complete(proxy.Options{
		Upstream: &url.URL{Scheme: "http", Host: "engine"}, Pilot: pilot, Transport: engine, Log: slog.New(slog.DiscardHandler),
	}))
	if err != nil {
		t.Fatal(err)
	}
	w := post(p, d.path, "tenant", string(came))
	went := slices.Clone(engine.went)
	if w.Code != http.StatusOK {
		if json.Valid(came) && w.Code != http.StatusForbidden {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		return
	}
	if !json.Valid(went) {
		t.Fatalf("no JSON was forwarded: %q", went)
	}
	if post(p, d.path, "tenant", string(came)); !bytes.Equal(engine.went, went) {
		t.Fatalf("forwarded was\n%s\nand then\n%s", went, engine.went)
	}
	onlyTexts(t, string(came), string(went))
	sent, arrived := understood(came), understood(went)
	if sent == nil || arrived == nil {
		return
	}
	r, err := conversationtest.Read(sent, arrived)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Readings {
		x := &r.Readings[i]
		parts := slices.Concat(x.Parts, x.Rows)
		if x.All != nil {
			parts = []conversationtest.Part{*x.All}
		}
		for _, part := range parts {
			if x.Err == nil && part.Kind == conversationtest.Lost && !stands(went, part.Value) {
				sent, arrived := r.Sent[x.Message].Texts[x.Text].Value, r.Arrived[x.Message].Texts[x.Text].Value
				t.Fatalf("message %d, text %d: lost: %.200q\nsent %q\narrived %q", x.Message, x.Text, part.Value, sent, arrived)
			}
		}
	}
}

// stands reports whether words arrived in some string of the body: the reader does not know all forms of documents.
func stands(went []byte, words string) bool {
	plain := func(text string) string {
		return strings.Join(strings.Fields(aFence.ReplaceAllString(anID.ReplaceAllString(text, ""), "")), "")
	}
	var all strings.Builder
	for _, raw := range aString.FindAll(went, -1) {
		var text string
		_ = json.Unmarshal(raw, &text)
		all.WriteString(plain(text) + "\n")
	}
	return strings.Contains(all.String(), plain(words))
}

func readerMessages(steps []conversationtest.Step) []conversationtest.Message {
	var out []conversationtest.Message
	for _, s := range steps {
		out = append(out, s.Message)
	}
	return out
}

var (
	aString = regexp.MustCompile(`"(?:\\.|[^"\\])*"`)
	anID    = regexp.MustCompile(` id=\\*"[0-9A-Fa-f]+\\*"`)
	aFence  = regexp.MustCompile(` \(quoted(?:-\d+)?\)`)
)

// onlyTexts fails if anything but texts has changed: outside of strings every byte is the same, and other strings are but for fences.
func onlyTexts(t *testing.T, came, went string) {
	t.Helper()
	was, is := aString.FindAllStringIndex(came, -1), aString.FindAllStringIndex(went, -1)
	if len(was) != len(is) {
		t.Fatalf("%d strings were forwarded of %d:\n%s\n%s", len(is), len(was), came, went)
	}
	at, now, key := 0, 0, ""
	for i := range was {
		between := came[at:was[i][0]]
		if between != went[now:is[i][0]] {
			t.Fatalf("other bytes than texts were changed: %q became %q", between, went[now:is[i][0]])
		}
		a, b := came[was[i][0]:was[i][1]], went[is[i][0]:is[i][1]]
		at, now = was[i][1], is[i][1]
		var name string
		if strings.HasSuffix(strings.TrimSpace(between), ":") {
			_ = json.Unmarshal([]byte(key), &name)
		}
		text := slices.Contains([]string{"content", "text", "output", "system", "instructions"}, name)
		if a != b && !text && aFence.ReplaceAllString(a, "") != aFence.ReplaceAllString(b, "") {
			t.Fatalf("a string that is no text was changed: %s became %s", a, b)
		}
		key = a
	}
	if came[at:] != went[now:] {
		t.Fatalf("other bytes than texts were changed: %q became %q", came[at:], went[now:])
	}
}

// understood returns the messages of a body, nil if it is not written as the script writes one, which has
// less.
func understood(raw []byte) (out []conversationtest.Message) {
	defer func() {
		if recover() != nil {
			out = nil
		}
	}()
	var b wireBody
	if json.Unmarshal(raw, &b) != nil {
		return nil
	}
	out, err := b.read()
	if err != nil {
		return nil
	}
	return out
}
