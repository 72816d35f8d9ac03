package dashboard_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/testkit/browsertest"
)

// TestPictures looks at the pictures of caches, and at what shadow mode and prices change, with a real browser.
func TestPictures(t *testing.T) {
	b := browsertest.Start(t)
	t.Run("a picture shows what prompts share", func(t *testing.T) { pictureIsTrue(b, t) })
	t.Run("the keyboard goes through a picture", func(t *testing.T) { keyboardInPicture(b, t) })
	t.Run("another cache is chosen", func(t *testing.T) { anotherCache(b, t) })
	t.Run("a provider's cache is shown with its money", func(t *testing.T) { moneyIsShown(b, t) })
	t.Run("shadow mode says would have", func(t *testing.T) { shadowSaysSo(b, t) })
	t.Run("everybody can use it all", func(t *testing.T) {
		s := newSample(12, dashboard.Options{})
		s.cloud = true
		p := open(b, t, dashboard.Handler(s), "")
		p.wait(`document.querySelector("#picture svg")`)
		for _, scheme := range []string{"light", "dark"} {
			p.media("prefers-color-scheme", scheme)
			for _, size := range [][2]int64{{1280, 800}, {640, 400}, {360, 700}} {
				p.size(size[0], size[1])
				p.run(`for (const d of document.querySelectorAll("details")) d.open = true`)
				p.wait(
					`["picture", "engine-chart"].every((id) => document.querySelector("#" + id + " svg").clientWidth === Math.max(240, ` +
						`document.getElementById(id).clientWidth))`,
				)
				p.well()
			}
		}
		p.quiet()
	})
}

// block is what the page draws of a part.
type block struct {
	X, Y, Width, Height float64
	Label               string
	Level, Place, Of    string
}

func (p *tab) blocks() []block {
	p.t.Helper()
	return eval[[]block](p, `[...document.querySelectorAll("#picture [role=treeitem]")].map((e) => ({
		X: e.x.baseVal.value, Y: e.y.baseVal.value, Width: e.width.baseVal.value, Height: e.height.baseVal.value,
		Label: e.getAttribute("aria-label"),
		Level: e.getAttribute("aria-level"), Place: e.getAttribute("aria-posinset"), Of: e.getAttribute("aria-setsize"),
	}))`)
}

// Each block is as wide as its tokens, as high as its prompts, and lies inside of the one in front of it; the table says
// the same.
func pictureIsTrue(b context.Context, t *testing.T) {
	s := newSample(12, dashboard.Options{})
	p := open(b, t, dashboard.Handler(s), "")
	p.wait(`document.querySelector("#picture svg")`)
	pic, _ := s.Picture("e1")
	blocks := p.blocks()
	if len(blocks) != len(pic.Parts) {
		t.Fatalf("%d blocks, want %d", len(blocks), len(pic.Parts))
	}
	perToken, perRequest := blocks[0].Width/float64(pic.Parts[0].Tokens), blocks[0].Height/float64(pic.Parts[0].Requests)
	near := func(a, b float64) bool { return math.Abs(a-b) < .03 }
	for i, part := range pic.Parts {
		x := blocks[i]
		if !near(x.Width, perToken*float64(part.Tokens)) || !near(x.Height, perRequest*float64(part.Requests)) {
			t.Errorf("block %d is %v × %v for %d tokens of %d prompts", i, x.Width, x.Height, part.Tokens, part.Requests)
		}
		if part.Parent >= 0 {
			in := blocks[part.Parent]
			if !near(x.X, in.X+in.Width) || x.Y < in.Y-.03 || x.Y+x.Height > in.Y+in.Height+.03 {
				t.Errorf("block %d at %v, %v is not behind %v", i, x.X, x.Y, in)
			}
		}
		for j, other := range blocks[:i] {
			if pic.Parts[j].Parent == part.Parent && other.Y < x.Y+x.Height-.03 && x.Y < other.Y+other.Height-.03 {
				t.Errorf("blocks %d and %d lie on each other", j, i)
			}
		}
		want := fmt.Sprintf(
			"Block %s: %d tokens, up to token %s; %d of 38 prompts begin so",
			part.Name,
			part.Tokens,
			grouped(part.End),
			part.Requests,
		)
		if strings.ReplaceAll(want, " 1 tokens", " 1 token") != x.Label {
			t.Errorf("%q, want %q", x.Label, want)
		}
	}
	rows := eval[[]string](p, `[...document.querySelectorAll("#parts tr")].map((tr) => [...tr.cells].map((c) => c.textContent).join("|"))`)
	if want := fmt.Sprintf("%s|the beginning|%d|%s|%d", pic.Parts[0].Name, pic.Parts[0].Tokens, grouped(pic.Parts[0].End),
		pic.Parts[0].Requests); len(
		rows,
	) != len(
		pic.Parts,
	) ||
		rows[0] != want {
		t.Errorf("%d rows, the first %q, want %q", len(rows), rows[0], want)
	}
	if got := p.text("picture-caption"); !strings.Contains(got, "The largest 64 of 300 blocks of the 38 live prompts.") {
		t.Errorf("%q", got)
	}
	if got, want := eval[int](p, `document.querySelectorAll("#engine-samples tr").length`), len(s.Samples("e1")); got != want || want == 0 {
		t.Errorf("%d samples of the engine, want %d", got, want)
	}
	p.quiet()
}

// grouped writes a number as the page does.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// Up and down go through all blocks, right and left along a prompt; what has the focus keeps it while prompts come.
func keyboardInPicture(b context.Context, t *testing.T) {
	s := newSample(12, dashboard.Options{})
	p := open(b, t, dashboard.Handler(s), "")
	p.wait(`document.querySelector("#picture [tabindex='0']")`)
	pic, _ := s.Picture("e1")
	at := func() int {
		return eval[int](p, `[...document.querySelectorAll("#picture [role=treeitem]")].indexOf(document.activeElement)`)
	}
	p.run(`document.querySelector("#picture [tabindex='0']").focus()`)
	want := 0
	for _, step := range []struct {
		key string
		to  func(i int) int
	}{
		{kb.ArrowDown, func(i int) int { return i + 1 }},
		{kb.ArrowRight, func(i int) int {
			return slices.IndexFunc(pic.Parts, func(x dashboard.Part) bool { return x.Parent == i })
		}},
		{kb.ArrowLeft, func(i int) int { return pic.Parts[i].Parent }},
		{kb.ArrowUp, func(i int) int { return i - 1 }},
		{kb.ArrowLeft, func(int) int { return 0 }}, // nothing is in front
		{kb.ArrowUp, func(int) int { return 0 }},
		{kb.End, func(int) int { return len(pic.Parts) - 1 }},
		{kb.ArrowDown, func(i int) int { return i }},
		{kb.Home, func(int) int { return 0 }},
		{kb.ArrowRight, func(int) int { return 1 }},
	} {
		p.key(step.key)
		if want = step.to(want); at() != want {
			t.Fatalf("%q: at %d, want %d", step.key, at(), want)
		}
		if got := p.text("part"); got != eval[string](p, `document.activeElement.getAttribute("aria-label")`) {
			t.Errorf("%q is announced", got)
		}
	}
	if n := eval[int](p, `document.querySelectorAll("#picture [tabindex='0']").length`); n != 1 {
		t.Errorf("%d ways into the picture", n)
	}
	before := p.blocks()[want]
	s.mu.Lock()
	s.extra = 12
	s.mu.Unlock()
	p.wait(`document.querySelector("#picture-caption").textContent.includes("50 live prompts")`)
	if after := p.blocks()[want]; at() != want || after.Label == before.Label {
		t.Errorf("the focus is at %d, want %d; %q became %q", at(), want, before.Label, after.Label)
	}
	p.quiet()
}

func anotherCache(b context.Context, t *testing.T) {
	s := newSample(12, dashboard.Options{})
	p := open(b, t, dashboard.Handler(s), "")
	p.wait(`document.querySelector("#picture svg")`)
	pressed := func() []string {
		return eval[[]string](p, `[...document.querySelectorAll("#engines button")].map((e) => e.ariaPressed)`)
	}
	if got := pressed(); !slices.Equal(got, []string{"false", "true"}) {
		t.Errorf("at first the one with the most prompts: %v", got)
	}
	p.run(`document.querySelector("#engines button").focus()`)
	p.key(kb.Enter)
	p.wait(`document.querySelector("#picture-caption").textContent.includes("21 live prompts")`)
	p.wait(`document.querySelector("#engine-facts").textContent.includes("capacity not known")`)
	if got := pressed(); !slices.Equal(got, []string{"true", "false"}) {
		t.Errorf("the other one: %v", got)
	}
	if !eval[bool](p, `document.activeElement === document.querySelector("#engines button")`) {
		t.Error("the focus is lost")
	}
	p.quiet()
}

func moneyIsShown(b context.Context, t *testing.T) {
	s := newSample(3, dashboard.Options{})
	p := open(b, t, dashboard.Handler(s), "")
	if eval[bool](p, `["cloud", "saved-money"].some((id) => document.getElementById(id).checkVisibility())`) {
		t.Error("money is shown that nothing costs")
	}
	s.mu.Lock()
	s.cloud = true
	s.mu.Unlock()
	p.wait(`document.getElementById("cloud").checkVisibility() && document.getElementById("saved-money").checkVisibility()`)
	rows := eval[[]string](p, `[...document.querySelectorAll("#accounts tr")].map((tr) => [...tr.cells].map((c) => c.textContent).join("|"))`)
	want := []string{
		"All|300|90,000|700,000|120,000|40,000|$1.23|$1.80", "support|280|80,000|690,000|100,000|38,000|$1.10|$1.79",
		"search|20|10,000|10,000|20,000|2,000|$0.13|−$0.01",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("%q, want %q", rows, want)
	}
	if got := p.text("saved-money"); !strings.Contains(got, "$0.0041") || !strings.Contains(got, "95 %: $0.0035 to $0.0047") {
		t.Errorf("%q", got)
	}
	p.quiet()
}

// Nothing that shadow mode did not do is said to be done.
func shadowSaysSo(b context.Context, t *testing.T) {
	q := dashboard.Request{
		ID:           "r1",
		At:           noon,
		Shadow:       true,
		Reordered:    2,
		LeftOut:      1,
		Replaced:     3,
		CharsSaved:   400,
		PromptTokens: new(100),
		CachedTokens: new(20),
		Predicted:    new(60),
	}
	held := dashboard.Request{ID: "r2", At: noon, Shadow: true, HeldOut: true}
	src := fixed{
		data: dashboard.Data{
			Now: noon, Since: noon, Shadow: true, Texts: true, Notice: "Shadow mode.", Requests: []dashboard.Request{q, held},
			Engines: []dashboard.Engine{{ID: "e", Name: "e", Live: new(1), Tokens: new(1)}},
			Totals: dashboard.Totals{
				Requests: 2,
				Shadow:   dashboard.Shadow{Requests: 2, HitRatio: new(.2), LeftOut: 1, Replaced: 3, CharsSaved: 400},
			},
			Saved: dashboard.Savings{Tokens: dashboard.Saving{Why: "nothing is saved"}, Seconds: dashboard.Saving{Why: "nothing is saved"}},
		},
		pictures: map[string]dashboard.Picture{"e": {ID: "e", Live: 1, Seen: 1}},
		details: map[string]dashboard.Detail{
			"r1": {
				Request: q,
				Before:  &dashboard.Text{Text: "a"},
				After:   &dashboard.Text{Text: "b"},
				Orders:  []dashboard.Order{{Where: "system[0]", Sent: []int{1, 0}}},
			},
		},
	}
	p := open(b, t, dashboard.Handler(src), "")
	text := strings.ReplaceAll(eval[string](p, `document.body.innerText`), "\u00a0", " ")
	for _, want := range []string{
		"would have: 2 reordered, 1 left out, 3 replaced", "would have been held out",
		"Shadow mode: what caches would hold if requests were sent as planned.",
		"Shadow mode, sent as they came: 20.0 %, in 2 requests. Would have left out 1 document, replaced 3 blocks, and not sent 400 characters.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	p.well()
	p.run(`location.hash = "#/requests/r1"`)
	p.wait(`!document.getElementById("detail").hidden`)
	detail := p.text("detail")
	for _, want := range []string{
		"What would have been done", "the request was sent as it came", "would have been sent as 2 1",
		"Would have been predicted in the cache", "After: as it would have been sent",
	} {
		if !strings.Contains(detail, want) {
			t.Errorf("%q is not in %s", want, detail)
		}
	}
	for _, bad := range []string{"What was done", "as it was sent", ": sent as"} {
		if strings.Contains(detail, bad) {
			t.Errorf("%q is in %s", bad, detail)
		}
	}
	p.well()
	p.quiet()
}
