package sidecar_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// secretive is a chat in which each place of a name or a text holds a word that is not to be found elsewhere. change is the place that is
// another one in round n.
func secretive(change string, n int) string {
	s := func(place string) string {
		if place == change {
			return fmt.Sprintf("zzsecret-%s-%d", place, n)
		}
		return "zzsecret-" + place
	}
	type m map[string]any
	body, _ := json.Marshal(m{
		"model": "m", "cache_salt": s("salt"), "prompt_cache_key": s("key"), "user": s("user"),
		"tools": []m{{"type": "function", "function": m{
			"name": s("tool"), "description": s("description"), "parameters": m{"type": "object", "properties": m{
				s("property"): m{"type": "string", "description": s("inner")},
			}},
		}}},
		"messages": []m{
			{"role": "system", "content": "The time is " + s("clock") + ". " + strings.Repeat(s("system")+" and more of it. ", 60)},
			{"role": "user", "name": s("author"), "content": "First " + s("question") + strings.Repeat(" again", 60)},
			{"role": "assistant", "content": nil, "tool_calls": []m{{
				"id": s("call"), "type": "function", "function": m{"name": s("called"), "arguments": `{"` + s("argument") + `":"` + s("value") + `"}`},
			}}},
			{"role": "tool", "tool_call_id": s("call"), "content": strings.Repeat(s("result")+" ", 60)},
			{"role": "user", "content": "And " + s("last") + "?"},
		},
	})
	return string(body)
}

// TestMissesTellNothing: what stands in prompts is in no log, metric, figure, header, file or profile, whatever the miss is about, unless
// texts are kept: then it is in the dashboard's data, and nowhere else.
func TestMissesTellNothing(t *testing.T) {
	for _, texts := range []bool{false, true} {
		log, dir := new(testkit.Log), t.TempDir()
		cfg := settings.Default()
		cfg.Listen, cfg.AdminAddr, cfg.InferAPIURL = "127.0.0.1:0", "127.0.0.1:0", newPrefixEngine(t).URL
		cfg.StateDir, cfg.Pprof, cfg.LogLevel, cfg.MissHeader, cfg.KeepTexts = filepath.Join(dir, "state"), true, "debug", true, texts
		registry := server.NewRegistry()
		logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		api, err := sidecar.New(cfg, sidecar.Options{Registry: registry, Log: logger})
		if err != nil {
			t.Fatal(err)
		}
		front, err := server.New(cfg, api, server.Options{Logger: logger, Registry: registry})
		if err != nil {
			t.Fatal(err)
		}
		api.Admin(front.Admin())
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- front.Run(ctx) }()
		<-front.Listening()
		base, admin := "http://"+front.Addr(), "http://"+front.AdminAddr()

		var shown strings.Builder
		places := []string{
			"salt", "key", "tool", "description", "property", "inner", "clock", "system", "author", "question", "call", "called", "argument", "value",
			"result",
		}
		for _, place := range places {
			for n := range 2 {
				r := request(t, http.MethodPost, base+chatPath, secretive(place, n))
				if r.code != http.StatusOK {
					t.Fatal(r.code, r.text)
				}
				fmt.Fprintln(&shown, r.header)
			}
		}
		data := ""
		testkit.Eventually(t, "all are compared", func() bool {
			data = request(t, http.MethodGet, admin+"/ui/data.json", "").text
			return strings.Contains(data, fmt.Sprintf(`"compared":%d`, 2*len(places)))
		})
		for _, path := range []string{
			"/metrics", "/figures", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/debug/pprof/allocs?debug=1",
			"/debug/pprof/mutex?debug=1",
		} {
			shown.WriteString(request(t, http.MethodGet, admin+path, "").text)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := api.Close(); err != nil {
			t.Error(err)
		}
		if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			fmt.Fprintln(&shown, path, string(text))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		shown.WriteString(log.String())
		if i := strings.Index(shown.String(), "zzsecret"); i >= 0 {
			t.Errorf("texts kept: %v: %q", texts, shown.String()[max(i-200, 0):i+40])
		}
		if in := strings.Contains(data, "zzsecret"); in != texts {
			t.Errorf("texts kept: %v, and in the data: %v", texts, in)
		}
		for _, of := range []string{"X-Ragpilot-Miss:[cause=", "prefix miss", `ragpilot_prefix_misses_total{cause="edited-history"}`} {
			if !strings.Contains(shown.String(), of) {
				t.Errorf("%q is not there: the test shows nothing", of)
			}
		}
		for _, path := range []string{"tools[0].function.parameters", "messages[0].content", "messages[2].tool_calls[0].function.arguments"} {
			if !strings.Contains(data, path) {
				t.Errorf("%s is not in %s", path, data)
			}
		}
	}
}
