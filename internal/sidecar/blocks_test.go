package sidecar_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit/wiretest"
)

// With recompute the engine receives where documents stand, and they stay in the order in which they came; a policy that is set holds.
func TestRecompute(t *testing.T) {
	for _, x := range []struct {
		recompute float64
		policy    string
		moves     bool
	}{{0, "", true}, {0.2, "", false}, {0.2, "best", true}} {
		r := newRecorder(t)
		cfg := settings.Default()
		cfg.InferAPIURL, cfg.Recompute, cfg.Policy = r.URL, x.recompute, x.policy
		api, err := sidecar.New(cfg, sidecar.Options{})
		if err != nil {
			t.Fatal(err)
		}
		url := wiretest.Serve(t, api)
		for _, order := range [][]int{{1, 2, 3}, {3, 2, 1}} {
			system := "<documents>\n"
			for _, i := range order {
				system += fmt.Sprintf(
					"<document>Of lamp %d this is known: it is lit every night, and put out in the morning by those who keep it.</document>\n",
					i,
				)
			}
			body, _ := json.Marshal(
				map[string]any{
					"model":    "m",
					"messages": []map[string]string{{"role": "system", "content": system + "</documents>"}, {"role": "user", "content": "Which?"}},
				},
			)
			ask(t, url+"/v1/chat/completions", body)
		}
		var sent struct {
			Messages []struct{ Content string }
			Blocks   []engines.BlockSpan
		}
		if err := json.Unmarshal(r.last(), &sent); err != nil {
			t.Fatal(err)
		}
		text := []byte(sent.Messages[0].Content)
		if moved := bytes.Index(text, []byte("lamp 1")) < bytes.Index(text, []byte("lamp 3")); moved != x.moves {
			t.Errorf("%+v: moved is %v in %s", x, moved, text)
		}
		if want := 3; x.recompute > 0 &&
			(len(sent.Blocks) != want || !slices.IsSortedFunc(sent.Blocks, func(a, b engines.BlockSpan) int { return a.From - b.From })) ||
			x.recompute == 0 && bytes.Contains(r.last(), []byte(`"blocks"`)) {
			t.Errorf("%+v: blocks %v in %s", x, sent.Blocks, r.last())
		}
	}
}
