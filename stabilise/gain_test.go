package stabilise_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/stabilise"
)

// TestGain measures how much of each prompt of a made-up agent stands at the beginning of its prompt before: 4,000 characters of rules with
// the time in the second line, eight tools in any order, 12 turns. The prompt is tools, then messages, as chat templates write it.
func TestGain(t *testing.T) {
	share := func(rules stabilise.Rules) float64 {
		s := newStabiliser(t, stabilise.Config{Rules: rules, Place: stabilise.PlaceUser})
		r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // any order will do
		common, all := 0, 0
		for talk := range 20 {
			before := ""
			messages := []map[string]string{{}, {"role": "user", "content": fmt.Sprint("hi ", talk)}}
			for turn := range 12 {
				messages[0] = map[string]string{"role": "system", "content": fmt.Sprintf(
					"You help.\nCurrent time: 2026-11-27T04:%02d:%02dZ\n%s", turn, r.IntN(60), strings.Repeat("Rule: be kind to all. ", 180),
				)}
				var tools []map[string]any
				for _, n := range r.Perm(8) {
					tools = append(tools, map[string]any{
						"name": fmt.Sprint("tool", n), "description": strings.Repeat("It finds words. ", 20), "type": "function",
					})
				}
				raw, _ := json.Marshal(map[string]any{"messages": messages, "tools": tools})
				body := s.Body(stabilise.Chat, stabilise.Conversation{Name: fmt.Sprint(talk)}, raw).Body
				prompt := gjson.GetBytes(body, "tools").Raw + gjson.GetBytes(body, "messages").Raw
				n := 0
				for n < min(len(prompt), len(before)) && prompt[n] == before[n] {
					n++
				}
				if turn > 0 {
					common, all = common+n, all+len(prompt)
				}
				before = strings.TrimSuffix(prompt, "]")
				messages = append(messages, map[string]string{"role": "assistant", "content": strings.Repeat("An answer. ", 30)},
					map[string]string{"role": "user", "content": fmt.Sprint("question ", turn)})
			}
		}
		return float64(common) / float64(all)
	}
	for _, c := range []struct {
		rules     stabilise.Rules
		low, high float64
	}{
		{stabilise.Rules{}, 0, 0.1},
		{stabilise.Rules{Tools: true}, 0.2, 0.4},
		{stabilise.Rules{Volatile: true}, 0, 0.1},
		{stabilise.Rules{Tools: true, Volatile: true}, 0.9, 1},
	} {
		got := share(c.rules)
		t.Logf("%+v: %.1f %%", c.rules, 100*got)
		if got < c.low || got > c.high {
			t.Errorf("%+v: %.3f of prompts stand in those before, want %.1f to %.1f", c.rules, got, c.low, c.high)
		}
	}
}
