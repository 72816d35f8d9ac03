package demo_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/demo"
)

func page(t *testing.T, r *demo.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := demo.WritePage(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wellFormed reads the page as XML, which is stricter than HTML, and looks for what a self-contained page without
// scripts must not have. It returns the names of all elements and the text in them.
func wellFormed(t *testing.T, page string) (elements map[string]int, text string) {
	t.Helper()
	elements = map[string]int{}
	var all strings.Builder
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements, all.String()
		}
		if err != nil {
			t.Fatalf("page is not well-formed: %v", err)
		}
		switch x := token.(type) {
		case xml.CharData:
			all.Write(x)
		case xml.StartElement:
			elements[x.Name.Local]++
			for _, a := range x.Attr {
				name := strings.ToLower(a.Name.Local)
				if strings.HasPrefix(name, "on") || name == "src" || name == "href" || name == "style" || strings.Contains(a.Value, "://") {
					t.Errorf("element %s has %s=%q", x.Name.Local, name, a.Value)
				}
			}
		}
	}
}

func TestPage(t *testing.T) {
	r := run(t, config(t))
	got := page(t, r)
	elements, text := wellFormed(t, got)
	for _, forbidden := range []string{"script", "link", "img", "iframe", "image", "use"} {
		if elements[forbidden] > 0 {
			t.Errorf("page has an element %s", forbidden)
		}
	}
	if strings.Contains(got, "url(") || strings.Contains(got, "@import") {
		t.Error("page asks for another resource")
	}
	if !strings.Contains(got, "prefers-color-scheme: dark") {
		t.Error("page has no dark colours")
	}
	// Three pictures with a title and a description each, and a title for every piece of a bar.
	if elements["desc"] != 3 {
		t.Errorf("%d descriptions of pictures, want 3", elements["desc"])
	}
	for _, want := range []string{"simulator", "dora 6", "fewer prompt tokens computed", "order note", "see B", "history"} {
		if !strings.Contains(text, want) {
			t.Errorf("page does not say %q", want)
		}
	}
}

// Documents, questions and IDs that try to be part of the page.
func TestPageEscapes(t *testing.T) {
	const attack = `</pre><script>alert("x")</script><doc a>` + "\x1b[31m" + `<img src=x onerror='y'> & </title> {{.}} </doc>`
	c := config(t)
	c.Script = demo.Script{
		{User: `<b>'"&`, Turn: 1, Question: "one? " + attack},
		{User: `<b>'"&`, Turn: 2, Question: "two? " + attack},
	}
	c.Search = func(context.Context, string, int) ([]contextpilot.Block, error) {
		return []contextpilot.Block{{ID: attack, Text: attack}, {ID: "plain", Text: "Title > " + attack + "\nbody"}}, nil
	}
	r := run(t, c)
	elements, text := wellFormed(t, page(t, r))
	if elements["script"]+elements["img"]+elements["b"]+elements["doc"] > 0 {
		t.Errorf("text became elements: %v", elements)
	}
	if !strings.Contains(text, `<script>alert("x")</script>`) {
		t.Error("the text is not shown as it is")
	}
	if strings.Contains(table(t, r), "\x1b") {
		t.Error("table holds an escape sequence")
	}
}

// mute is an engine that does not say what came from its cache.
type mute struct{ engines.Engine }

func (mute) Name() string { return "engine of a test" }

func (m mute) Generate(ctx context.Context, q engines.Request, onText func(string) error) (engines.Response, error) {
	r, err := m.Engine.Generate(ctx, q, onText)
	r.Usage.CachedTokens, r.Usage.CachedKnown = 0, false
	return r, err
}

func TestCachedTokensUnknown(t *testing.T) {
	c := config(t)
	c.NewEngine = func() (engines.Engine, error) { return mute{demo.NewSimulator(0)}, nil }
	r := run(t, c)
	if _, ok := r.Saving(); ok {
		t.Error("a saving is claimed")
	}
	got := table(t, r)
	for _, want := range []string{"unknown", "no saving is claimed", "measured"} {
		if !strings.Contains(got, want) {
			t.Errorf("table lacks %q", want)
		}
	}
	if strings.Contains(got, "fewer prompt tokens") {
		t.Error("table claims a saving")
	}
	if _, text := wellFormed(t, page(t, r)); strings.Contains(text, "fewer prompt tokens") || !strings.Contains(text, "no saving is claimed") {
		t.Error("page claims a saving")
	}
}

// On one engine for both sides, nothing of the first side may be found by the second.
func TestTagKeepsSidesApart(t *testing.T) {
	c := config(t)
	engine := demo.NewSimulator(0)
	c.NewEngine = func() (engines.Engine, error) { return engine, nil }
	c.Tag = "r1"
	var seen []string
	c.Progress = func(side, request string) { seen = append(seen, side+" "+request) }
	r := run(t, c)
	if first := r.With[0]; first.Cached != 0 {
		t.Errorf("the second side's first request found %d tokens of the first side", first.Cached)
	}
	if len(seen) != 2*len(c.Script) || seen[0] != "without ana-1" || seen[len(c.Script)] != "with ana-1" {
		t.Errorf("progress: %d calls, first %q", len(seen), seen[0])
	}
}
