package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/localtest"
	"github.com/ragpilot/ragpilot/engines/local/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// cutOut returns what a body's blocks stand for in its messages.
func cutOut(t *testing.T, body string) (blocks []string) {
	t.Helper()
	var b struct{ Blocks []engines.BlockSpan }
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	texts := contents(t, body)
	for _, s := range b.Blocks {
		blocks = append(blocks, fmt.Sprintf("%d:%s", s.Message, texts[s.Message][s.From:s.To]))
	}
	return blocks
}

const wrappedDocs = "Größe «ß» first.\n<documents>\n<document>Alpha über " +
	"\"all\"</document>\n<document>Beta\n\tzwei</document>\n</documents>\nAnswer."

// The engine gets the places of the documents in the texts as they are sent.
func TestBlocks(t *testing.T) {
	e := newEngine(t)
	shadow, holdOut := false, 0.
	p := newProxy(t, e, func(o *proxy.Options) {
		o.Blocks, o.Live = true, func() (bool, float64) { return shadow, holdOut }
	})
	post(p, chatPath, "", chat(wrappedDocs, "q", "[1] one one\n[2] two two", "nothing found"))
	want := []string{
		"0:<document>Alpha über \"all\"</document>", "0:<document>Beta\n\tzwei</document>", "3:[1] one one", "3:[2] two two",
	}
	if got := cutOut(t, e.last()); !slices.Equal(got, want) {
		t.Errorf("blocks %q, want %q", got, want)
	}
	// Others stand in front there: the second conversation has them in the order of the first.
	swapped := strings.Replace(strings.Replace(wrappedDocs, "Alpha über \"all\"", "X", 1), "Beta\n\tzwei", "Alpha über \"all\"", 1)
	swapped = strings.Replace(swapped, ">X<", ">Beta\n\tzwei<", 1)
	post(p, chatPath, "", chat(swapped, "q"))
	if got := cutOut(t, e.last()); !slices.Equal(got, want[:2]) {
		t.Errorf("reordered: blocks %q, want %q", got, want[:2])
	}
	for name, c := range map[string]struct {
		path, body string
		shadow     bool
		holdOut    float64
		header     []string
	}{
		"no documents":  {body: chat("s", "q", "found nothing")},
		"in a question": {body: chat("s", wrappedDocs)},
		"several parts": {
			body: `{"messages":[{"role":"system","content":[{"type":"text","text":` + string(quoted(wrappedDocs)) + `}]}]}`,
		},
		"null":             {body: `{"blocks":null,` + chat(wrappedDocs, "q")[1:]},
		"Anthropic's":      {path: "/v1/messages", body: chat(wrappedDocs, "q", "[1] a a\n[2] b b")},
		"held out":         {body: chat(wrappedDocs, "q1"), holdOut: 1},
		"shadow":           {body: chat(wrappedDocs, "q2"), shadow: true},
		"switched off":     {body: chat(wrappedDocs, "q3"), header: []string{"X-ContextPilot-Enabled", "0"}},
		"broken character": {body: strings.Replace(chat(wrappedDocs, "q4"), "first", "f\xffst", 1)},
	} {
		if c.path == "" {
			c.path = chatPath
		}
		shadow, holdOut = c.shadow, c.holdOut
		post(p, c.path, "", c.body, c.header...)
		if strings.Count(e.last(), `"blocks"`) != strings.Count(c.body, `"blocks"`) || len(cutOut(t, e.last())) > 0 {
			t.Errorf("%s: sent %s", name, e.last())
		}
	}
}

// A client that says itself where blocks stand gets its texts forwarded as they are, with or without the setting; otherwise nothing is
// added.
func TestOwnBlocks(t *testing.T) {
	e := newEngine(t)
	for _, on := range []bool{true, false} {
		p := newProxy(t, e, func(o *proxy.Options) { o.Blocks = on })
		if post(p, chatPath, "", chat(wrappedDocs, "q", "[1] one one\n[2] two two")); !on && strings.Contains(e.last(), "blocks") {
			t.Errorf("without the setting %s", e.last())
		}
		swapped := strings.Replace(
			chat(
				"s", "q", "[1] two two\n[2] one one", "[1] two two\n[2] three three",
			), `"model":"m"`, `"blocks":[{"message":3,"from":0,"to":11}],"model":"m"`, 1,
		)
		if post(p, chatPath, "", swapped); e.last() != swapped {
			t.Errorf("sent %s, want %s", e.last(), swapped)
		}
	}
}

// A ragpilot engine takes the places, and finds the documents in another conversation, in another order.
func TestBlocksReachTheEngine(t *testing.T) {
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := localtest.WriteModel(model, 1); err != nil {
		t.Fatal(err)
	}
	answers, err := local.Open(local.Config{Model: model, Reuse: local.ReuseBlocks, Recompute: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	api := server.New(answers, server.Config{})
	upstream := &engine{Server: httptest.NewServer(api)}
	t.Cleanup(func() {
		upstream.Close()
		_ = api.Shutdown(t.Context())
		_ = answers.Close()
	})
	cached := func(blocks bool, question string, order ...int) int {
		t.Helper()
		p := newProxy(t, upstream, func(o *proxy.Options) { o.Blocks = blocks })
		system := "Use these.\n<documents>\n"
		for _, i := range order {
			system += "<document>" + strings.Repeat(fmt.Sprintf("Lamp %d is lit at night. ", i), 12) + "</document>\n"
		}
		body, _ := json.Marshal(
			map[string]any{
				"max_tokens": 2, "messages": []map[string]string{
					{"role": "system", "content": system + "</documents>"}, {"role": "user", "content": question},
				},
			},
		)
		w := post(p, chatPath, "", string(body))
		var a struct {
			Usage struct {
				Prompt  int `json:"prompt_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return 100 * a.Usage.Details.Cached / a.Usage.Prompt
	}
	cached(true, "Is lamp 1 lit?", 1, 2, 3)
	if got := cached(true, "Is lamp 2 lit?", 3, 1, 2); got < 60 {
		t.Errorf("%d %% of the prompt were taken from the cache", got)
	}
	if got := cached(false, "Is lamp 3 lit?", 2, 3, 1); got > 40 {
		t.Errorf("%d %% without blocks: the test shows nothing", got)
	}
}
