package dashboard_test

import (
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/testkit/browsertest"
)

//go:embed testdata/check.js
var check string

// TestPage looks at the page with a real browser.
func TestPage(t *testing.T) {
	b := browsertest.Start(t)

	t.Run("figures appear and change without a reload", func(t *testing.T) {
		s := newSample(12, dashboard.Options{})
		p := open(b, t, dashboard.Handler(s), "")
		p.shows(s.Data())
		for id, want := range map[string]string{
			"saved-tokens": "Tokens saved|1,512|95 %: 1,290 to 1,734", "saved-seconds": "Time saved|171 ms|95 %: 139 ms to 203 ms",
			"engines": "gpu-0:8000, Qwen3-8B|support|search|412K|96.5K|21|38",
			"engine-facts": "gpu-0:8000, Qwen3-8B, prompts that begin with the text a91f73c0d2b4e688: 38 live prompts, 412,368 tokens, " +
				"capacity 655,360 tokens.",
			"feeds":  "gpu-0, kv-events|complete|48,212|gpu-1|not connected, incomplete since |(gap): connection refused|310",
			"causes": "clock|ragpilot|12|10,116|$0.0273|tool-set|anthropic|no price", "misses-note": "310 prompts|2 more were not compared",
			"last-misses": "support, chat-101|clock|messages[0].content|was: It is 10:41|is: It is 10:42|12|843|$0.0023|" +
				"tool-set (anthropic: tools_changed)|not said|evicted|the prompts are the same there|2,048",
			"notice": "Sample data: no engine was measured.", "spoken": fmt.Sprintf("%d requests, hit ratio", s.Data().Totals.Requests),
		} {
			for part := range strings.SplitSeq(want, "|") {
				if got := p.text(id); !strings.Contains(strings.ReplaceAll(got, "\u00a0", " "), part) {
					t.Errorf("%s: %q is not in %q", id, part, got)
				}
			}
		}
		p.run(`window.same = true; document.querySelector("#requests a").focus(); window.focused = document.activeElement`)
		for range 2 {
			before := len(s.Data().Samples)
			s.step()
			p.wait(fmt.Sprintf(`document.querySelectorAll("#samples tr").length === %d`, before+1))
			p.shows(s.Data())
		}
		if !eval[bool](p, `window.same && document.activeElement === window.focused && document.activeElement.isConnected`) {
			t.Error("the page was loaded again, or lost the focus")
		}
		p.quiet()
	})

	t.Run("an interval without figures has no point", func(t *testing.T) {
		d := dashboard.Data{Now: noon, Interval: 10}
		for i, tokens := range []int{100, 200, 0, 400, 0} {
			d.Samples = append(
				d.Samples,
				dashboard.Sample{At: noon.Add(time.Duration(i) * 10 * time.Second), Requests: 1, PromptTokens: tokens, CachedTokens: tokens / 2},
			)
		}
		d.Samples = append(d.Samples, dashboard.Sample{At: noon.Add(time.Hour), Requests: 1, PromptTokens: 5, CachedTokens: 1})
		p := open(b, t, dashboard.Handler(fixed{data: d}), "")
		counts := `["#chart .point", "#chart .line", "#samples tr"].map((s) => document.querySelectorAll(s).length)`
		if got := eval[[]int](p, counts); !slices.Equal(
			got,
			[]int{4, 2, 6},
		) {
			t.Errorf("points, lines, rows: %v", got)
		}
		if got := p.text("samples"); !strings.Contains(got, "not reported") {
			t.Errorf("%q", got)
		}
		p.quiet()
	})

	t.Run("a request shows what was done", func(t *testing.T) {
		s := newSample(12, dashboard.Options{TextBytes: 1 << 10})
		list := s.Data().Requests
		q := list[slices.IndexFunc(list, func(q dashboard.Request) bool { return q.LeftOut > 0 })]
		p := open(b, t, dashboard.Handler(s), "")
		p.do(chromedp.Do(p.ctx, chromedp.Click(chromedp.CSS(`#requests [data-key="`+q.ID+`"] a`))))
		p.wait(`!document.getElementById("detail").hidden`)
		detail := strings.ReplaceAll(p.text("detail"), "\u00a0", " ")
		for _, want := range []string{
			"Request " + q.ID, q.Session, q.Model, fmt.Sprintf("Documents reordered%d", q.Reordered), fmt.Sprintf("Documents left out%d", q.LeftOut),
			fmt.Sprintf("Blocks replaced%d", q.Replaced), "sent as 3 1 5 2 4", "wait for the first byte",
			fmt.Sprintf("Predicted in the cache%d,%03d", *q.Predicted/1000, *q.Predicted%1000),
		} {
			if !strings.Contains(detail, want) {
				t.Errorf("%q is not in %q", want, detail)
			}
		}
		d, _ := s.Request(q.ID)
		if before, after := p.text("before"), p.text("after"); before != d.Before.Text+"\n" || after != d.After.Text+"\n" {
			t.Errorf("before %q, after %q", before, after)
		}
		marks := eval[[]string](
			p,
			`[...document.querySelectorAll("#before mark, #before del, #after mark, #after ins")].map((e) => e.tagName + " " + `+
				`e.textContent.split("\n")[0])`,
		)
		for _, want := range []string{`MARK <document id="faq-3">`, `MARK <document id="faq-5">`, "INS [shown above, in tool result call_7]"} {
			if !slices.Contains(marks, want) {
				t.Errorf("%q is not in %q", want, marks)
			}
		}
		if eval[bool](p, `document.querySelector("#before del") !== null`) {
			t.Error("a line is said to be gone")
		}
		p.run(`history.back()`)
		p.wait(`!document.getElementById("overview").hidden`)
		if got := eval[string](p, `document.activeElement.textContent`); got != q.ID {
			t.Errorf("focus is at %q", got)
		}
		p.quiet()
	})

	t.Run("texts are compared line by line", func(t *testing.T) {
		p := open(b, t, dashboard.Handler(newSample(1, dashboard.Options{})), "")
		for _, c := range [][3]string{
			{"a\nb", "a\nb", "[same a b] [same a b]"},
			{"a\nb\nc", "c\na\nb", "[same a b][moved c] [moved c][same a b]"},
			{"a\nb\nc", "a\nc", "[same a][only b][same c] [same a c]"},
			{"a\nc", "a\nnote\nc", "[same a c] [same a][only note][same c]"},
			{"", "a", "[same ] [only a]"},
		} {
			got := eval[string](p, fmt.Sprintf(`import("./compare.js").then(({ compare }) =>
				compare(%q, %q).map((runs) => runs.map((r) => "[" + r.mark + " " + r.lines.join(" ") + "]").join("")).join(" "))`, c[0], c[1]),
				chromedp.EvalAwaitPromise)
			if got != c[2] {
				t.Errorf("%q, %q: %s, want %s", c[0], c[1], got, c[2])
			}
		}
		// Texts without a common line, as long as they may be searched, and longer.
		for _, lines := range []int{2000, 30_000} {
			if got := eval[[]int](p, fmt.Sprintf(`import("./compare.js").then(({ compare }) => {
				const text = (name) => Array.from({ length: %d }, (_, i) => name + i).join("\n");
				return compare(text("a"), text("b")).map((runs) => runs.length === 1 && runs[0].mark === "only" ? runs[0].lines.length : 0);
			})`, lines), chromedp.EvalAwaitPromise); !slices.Equal(got, []int{lines, lines}) {
				t.Errorf("%d lines: %v", lines, got)
			}
		}
		p.quiet()
	})

	t.Run("a link to a request opens it", func(t *testing.T) {
		s := newSample(2, dashboard.Options{})
		p := open(b, t, dashboard.Handler(s), "#/requests/"+s.Data().Requests[3].ID)
		p.wait(`!document.getElementById("detail").hidden`)
		if got := p.text("detail"); !strings.Contains(got, "texts of prompts are not kept unless the server is asked to keep them") {
			t.Errorf("%q", got)
		}
		p.quiet()
		p.run(`location.hash = "#/requests/long%20gone"`)
		p.wait(`document.getElementById("detail-title").textContent === "Request long gone"`)
		if got := p.text("detail"); !strings.Contains(got, "no longer kept") {
			t.Errorf("%q", got)
		}
	})

	t.Run("what is not measured says so", func(t *testing.T) {
		s := newSample(0, dashboard.Options{})
		s.bare = true
		p := open(b, t, dashboard.Handler(s), "")
		text := eval[string](p, `document.body.innerText`)
		for want, n := range map[string]int{
			"not measured": 4, "--hold-out": 2, "Nothing is in an index yet": 1, "None yet.": 2,
			"No answer has named its cached tokens yet.": 1,
		} {
			if strings.Count(text, want) != n {
				t.Errorf("%q is not there %d times: %s", want, n, text)
			}
		}
		p.well()
		p.quiet()
	})

	t.Run("texts from outside stay texts", func(t *testing.T) {
		p := open(b, t, dashboard.Handler(hostileSource()), "")
		if n := strings.Count(eval[string](p, `document.body.textContent`), hostile); n < 20 {
			t.Errorf("the text is shown %d times", n)
		}
		p.run(`document.querySelector("#requests a").click()`)
		p.wait(`!document.getElementById("detail").hidden`)
		if n := strings.Count(p.text("detail"), hostile); n < 9 {
			t.Errorf("the detail shows the text %d times: %s", n, p.text("detail"))
		}
		if got := p.text("before"); got != hostile+"\nas it came\n" {
			t.Errorf("before: %q", got)
		}
		if eval[bool](p, `window.broken === true || document.querySelectorAll("script").length !== 1 || document.images.length > 0`) {
			t.Error("a text became markup")
		}
		p.quiet()
	})

	t.Run("the keyboard reaches everything", func(t *testing.T) {
		s := newSample(12, dashboard.Options{TextBytes: 1 << 10})
		p := open(b, t, dashboard.Handler(s), "")
		p.wait(`document.querySelector("[role=treeitem]") !== null`)
		p.run(`document.getElementById("pause").click(); document.activeElement.blur()`)
		p.reaches(25)
		p.key(kb.Home)
		p.run(`document.activeElement.blur()`)
		p.run(`document.querySelector("summary").focus()`)
		p.key(" ")
		p.wait(`document.querySelector("details").open`)
		p.key(kb.Tab)
		if got := eval[string](p, `document.activeElement.getAttribute("aria-label")`); got != "Hit ratio over time" {
			t.Errorf("behind the open table's summary: %q", got)
		}
		p.run(`document.querySelector("#more").focus()`)
		rows := eval[int](p, `document.querySelectorAll("#requests tr").length`)
		p.key(kb.Enter)
		if got := eval[int](p, `document.querySelectorAll("#requests tr").length`); got <= rows {
			t.Errorf("%d requests shown after %d", got, rows)
		}
		p.run(`document.querySelector("#requests a").focus()`)
		p.key(kb.Enter)
		p.wait(`!document.getElementById("detail").hidden`)
		if got := eval[string](p, `document.activeElement.id`); got != "detail-title" {
			t.Errorf("focus in the detail: %q", got)
		}
		p.reaches(5)
		p.run(`document.querySelector("#detail a").focus()`)
		p.key(kb.Enter)
		p.wait(`!document.getElementById("overview").hidden`)
		if !eval[bool](p, `document.activeElement === document.querySelector("#requests a")`) {
			t.Error("the focus is not where it came from")
		}
		p.run(`document.getElementById("skip").focus()`)
		p.key(kb.Enter)
		if got := eval[string](p, `document.activeElement.id`); got != "main" {
			t.Errorf("behind the skip link: %q", got)
		}
		p.quiet()
	})

	t.Run("the page pauses, and says when nobody answers", func(t *testing.T) {
		s := newSample(3, dashboard.Options{})
		var down atomic.Bool
		var h atomic.Value
		h.Store(dashboard.Handler(s))
		p := open(b, t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			h.Load().(http.Handler).ServeHTTP(w, r)
		}), "")
		p.run(`document.getElementById("pause").click()`)
		p.wait(`document.getElementById("state").textContent.startsWith("Paused at") && document.getElementById("pause").ariaPressed === "true"`)
		before := p.text("scope")
		s.step()
		p.run(`document.dispatchEvent(new Event("visibilitychange"))`)
		if got := p.text("scope"); got != before {
			t.Errorf("changed while paused: %q", got)
		}
		p.run(`document.getElementById("pause").click()`)
		p.wait(fmt.Sprintf("document.getElementById('scope').textContent !== %q", before))
		down.Store(true)
		p.wait(`document.getElementById("state").textContent.startsWith("No answer. Figures are from ")`)
		p.run(`location.hash = "#/requests/any"`)
		p.wait(`document.getElementById("detail").textContent.includes("No answer from the server.")`)
		other := newSample(2, dashboard.Options{}) // a server started again: the same IDs at other times
		h.Store(dashboard.Handler(other))
		down.Store(false)
		p.wait(`document.getElementById("state").textContent.startsWith("Updated")`)
		if got, want := eval[string](p, `document.querySelector("#requests tr:last-child th").textContent`),
			noon.Add(-20*time.Second).Format(time.TimeOnly); got != want {
			t.Errorf("earliest request at %s, want %s", got, want)
		}
	})

	t.Run("everybody can use it", func(t *testing.T) {
		s := newSample(30, dashboard.Options{TextBytes: 1 << 10})
		p := open(b, t, dashboard.Handler(s), "")
		grounds := map[string]string{}
		for _, view := range []string{"", "#/requests/" + s.Data().Requests[0].ID} {
			p.run(fmt.Sprintf(`location.hash = %q`, view))
			p.wait(fmt.Sprintf(`document.getElementById("detail").hidden === %t`, view == ""))
			for _, scheme := range []string{"light", "dark"} {
				p.media("prefers-color-scheme", scheme)
				grounds[scheme] = eval[string](p, `getComputedStyle(document.body).backgroundColor`)
				// 640 × 400 is what a window of 1280 × 800 shows at 200 %.
				for _, size := range [][2]int64{{1280, 800}, {640, 400}, {360, 700}} {
					p.size(size[0], size[1])
					p.run(`document.querySelector("details").open = true`)
					p.wait(
						`document.getElementById("overview").hidden || document.querySelector("#chart svg").clientWidth === Math.max(240, ` +
							`document.getElementById("chart").clientWidth)`,
					)
					p.well()
				}
				p.size(1280, 800)
			}
		}
		if grounds["light"] == grounds["dark"] {
			t.Errorf("light and dark are both %s", grounds["light"])
		}
		p.quiet()
	})
}

// shows checks the page against what the Source says.
func (p *tab) shows(d dashboard.Data) {
	p.t.Helper()
	if got, want := p.text("hit-ratio"), fmt.Sprintf("%.1f\u00a0%%", 100**d.Totals.HitRatio); got != want {
		p.t.Errorf("hit ratio %q, want %q", got, want)
	}
	if got, want := p.text("scope"), fmt.Sprintf("%d requests since", d.Totals.Requests); !strings.HasPrefix(got, want) {
		p.t.Errorf("%q, want %q", got, want)
	}
	for selector, want := range map[string]int{
		"#chart .point": len(d.Samples), "#samples tr": len(d.Samples), "#requests tr": min(20, len(d.Requests)),
		"#sessions tr": len(d.Sessions), "#engines tr": len(d.Engines),
	} {
		if got := eval[int](p, `document.querySelectorAll("`+selector+`").length`); got != want {
			p.t.Errorf("%s: %d, want %d", selector, got, want)
		}
	}
	if got := eval[string](p, `document.querySelector("#requests a").textContent`); got != d.Requests[0].ID {
		p.t.Errorf("first request %q, want %q", got, d.Requests[0].ID)
	}
	if p.text("ttft-p95") == "" || strings.Contains(p.text("ttft-p95"), "not measured") {
		p.t.Errorf("%q", p.text("ttft-p95"))
	}
}

// well reports what testdata/check.js finds.
func (p *tab) well() {
	p.t.Helper()
	for _, line := range eval[[]string](p, check) {
		p.t.Errorf(
			"%s: %s",
			eval[string](p, `innerWidth + location.hash + (matchMedia("(prefers-color-scheme: dark)").matches ? " dark" : "")`),
			line,
		)
	}
}

// reaches presses Tab from the top of the page until it has met everything that can have the focus, and checks that each
// is seen to have it.
func (p *tab) reaches(least int) {
	p.t.Helper()
	p.run(`document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute("tabindex")`)
	want := eval[int](
		p,
		`(window.left = new Set([...document.querySelectorAll("a[href], button, summary, [tabindex='0']")].filter((e) => `+
			`e.checkVisibility()))).size`,
	)
	if want < least {
		p.t.Errorf("%d things can have the focus, want at least %d", want, least)
	}
	for range want {
		p.key(kb.Tab)
		if again := eval[string](p, `left.delete(document.activeElement) ? "" : document.activeElement.outerHTML.slice(0, 200)`); again != "" {
			p.t.Errorf("met twice: %s", again)
		}
		p.wait(`(() => {
			const e = document.activeElement, box = e.getBoundingClientRect(), style = getComputedStyle(e);
			return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && box.bottom > 0 && box.top < innerHeight && box.right > 0;
		})()`)
	}
	if missed := eval[[]string](p, `[...left].map((e) => e.outerHTML.slice(0, 200))`); len(missed) > 0 {
		p.t.Errorf("not reached: %q", missed)
	}
}

func (p *tab) run(statements string) {
	p.t.Helper()
	p.do(chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](`{ `+statements+`; }`)))
}

// hostileSource has markup in every text.
func hostileSource() fixed {
	x := hostile
	miss := dashboard.Miss{
		ID: x, Tenant: x, Session: x, Source: x, Cause: x, Reason: x, Path: x, Was: x, Is: x, At: noon,
	}
	q := dashboard.Request{ID: x, At: noon, Tenant: x, Session: x, Path: x, Model: x, PromptTokens: new(10), CachedTokens: new(4)}
	saving := dashboard.Saving{PerRequest: new(1.0), Currency: x}
	return fixed{
		data: dashboard.Data{
			Notice: x, Now: noon, Since: noon, Texts: true, Interval: 10, Totals: dashboard.Totals{Requests: 1},
			Saved:    dashboard.Savings{Tokens: dashboard.Saving{Why: x}, Seconds: dashboard.Saving{Why: x}, Money: &saving},
			Cloud:    &dashboard.Cloud{Provider: x, Currency: x, Tenants: []dashboard.Account{{Tenant: x, Cost: new(1.0), Saved: new(-1.0)}}},
			Engines:  []dashboard.Engine{{ID: x, Name: x, Tenant: x, Front: x}},
			Sessions: []dashboard.Session{{ID: x, Tenant: x, Last: noon}},
			Requests: []dashboard.Request{q},
			Misses: &dashboard.Misses{
				Currency: x, Causes: []dashboard.Cause{{Source: x, Cause: x, Money: new(1.0)}}, Last: []dashboard.Miss{miss},
			},
		},
		details: map[string]dashboard.Detail{x: {
			Request: q, Before: &dashboard.Text{Text: x + "\nas it came"}, After: &dashboard.Text{Text: x},
			Orders: []dashboard.Order{{Where: x, Sent: []int{1, 0}}}, Stages: []dashboard.Stage{{Name: x, Seconds: 1}},
		}},
		pictures: map[string]dashboard.Picture{
			x: {ID: x, Live: 2, Seen: 2, Blocks: 1, Parts: []dashboard.Part{{Name: x, Parent: -1, Tokens: 3, End: 3, Requests: 2}}},
		},
	}
}
