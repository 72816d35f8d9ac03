package repeat_test

import (
	_ "embed"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/prompt/repeat"
	"github.com/ragpilot/ragpilot/internal/testkit/wiretest"
)

//go:embed testdata/chunks.jsonl
var goldens []byte

func unmarshal(t *testing.T, raw json.RawMessage, v any) {
	t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatal(err)
	}
}

func TestGoldens(t *testing.T) {
	type golden struct {
		Name, Op              string
		Params, Input, Output json.RawMessage
	}
	cases := 0
	wiretest.EachLine(t, goldens, func(g golden) {
		cases++
		t.Run(g.Name, func(t *testing.T) {
			var params struct{ Modulus int }
			var in struct{ Text string }
			var want struct {
				Lines  []int `json:"lines_per_block"`
				Hashes []string
			}
			unmarshal(t, g.Params, &params)
			unmarshal(t, g.Input, &in)
			unmarshal(t, g.Output, &want)
			got := want
			got.Lines, got.Hashes = nil, nil
			for _, b := range repeat.Blocks(in.Text, params.Modulus) {
				got.Lines = append(got.Lines, b.Lines)
				got.Hashes = append(got.Hashes, b.Hash)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("blocks (-want +got):\n%s", diff)
			}
			if params.Modulus == repeat.DefaultModulus {
				if diff := cmp.Diff(repeat.Blocks(in.Text, 0), repeat.Blocks(in.Text, params.Modulus)); diff != "" {
					t.Errorf("modulus 0 (-want +got):\n%s", diff)
				}
			}
		})
	})
	if cases != 7 {
		t.Errorf("%d cases, want 7", cases)
	}
}

// item is a message of the one format, or an element of the input of the other.
type item struct {
	Role, Type, Name string
	Content          json.RawMessage
	CallID           string `json:"call_id"`
	ToolCallID       string `json:"tool_call_id"`
	Output           string
	ToolCalls        []struct {
		ID       string
		Function struct{ Name string }
	} `json:"tool_calls"`
}

// texts returns what the recorded implementation looks at, as a caller of this package would.
func texts(messages, input []item) []repeat.Text {
	var out []repeat.Text
	tools := map[string]string{}
	for i, m := range messages {
		for _, c := range m.ToolCalls {
			tools[c.ID] = c.Function.Name
		}
		x := repeat.Text{Message: i}
		if json.Unmarshal(m.Content, &x.Text) != nil || x.Text == "" {
			continue
		}
		switch m.Role {
		case "system":
			x.Kind, x.Label = repeat.System, repeat.SystemPrompt
		case "user":
			x.Label = repeat.UserMessage
		case "assistant":
			x.Kind, x.Label = repeat.Assistant, repeat.AssistantMessage
		case "tool":
			x.Kind, x.Label = repeat.ToolResult, tools[m.ToolCallID]
		}
		out = append(out, x)
	}
	for i, m := range input {
		if m.Type == "function_call" {
			tools[m.CallID] = m.Name
		}
		if m.Type == "function_call_output" {
			out = append(out, repeat.Text{Kind: repeat.ToolResult, Message: i, Label: tools[m.CallID], Text: m.Output})
		}
	}
	return out
}

// TestRecordings replays the recorded requests in which blocks were counted or replaced.
func TestRecordings(t *testing.T) {
	type request struct{ Messages, Input json.RawMessage }
	type exchange struct {
		Name  string
		Steps []struct {
			Path   string
			Body   request
			Got    struct{ JSON request } `json:"upstream_received"`
			Answer struct {
				Result *struct {
					repeat.Counts `json:"dedup"`
					Before        int `json:"chars_before_slim"`
					After         int `json:"chars_after_slim"`
				} `json:"x-contextpilot-result"`
			} `json:"response_headers"`
		}
	}
	list := func(r request) []repeat.Text {
		var messages, input []item
		_ = json.Unmarshal(r.Messages, &messages) // what is no list is not looked at
		_ = json.Unmarshal(r.Input, &input)
		return texts(messages, input)
	}
	counted, replaced := 0, map[string]int{}
	wiretest.Each(t, func(x exchange) {
		for _, s := range x.Steps {
			sent, received := list(s.Body), list(s.Got.JSON)
			head := s.Answer.Result
			if head != nil && head.BlocksDeduped == 0 {
				sent = received // documents were reordered before blocks were looked at
			}
			if s.Path != "/v1/chat/completions" && s.Path != "/v1/responses" || len(sent) != len(received) {
				continue
			}
			r := repeat.Replace(sent, 0)
			if head != nil {
				counted++
				if diff := cmp.Diff(head.Counts, r.Counts); diff != "" {
					t.Errorf("%s: counts (-want +got):\n%s", x.Name, diff)
				}
				if head.BlocksDeduped > 0 && (r.CharsBefore != head.Before || r.CharsAfter != head.After) {
					t.Errorf("%s: from %d to %d characters, want %d to %d", x.Name, r.CharsBefore, r.CharsAfter, head.Before, head.After)
				}
			}
			for i := range received {
				if r.Texts[i] != received[i].Text && (head != nil || s.Path == "/v1/responses") {
					t.Errorf("%s, text %d:\n got %q\nwant %q", x.Name, i, r.Texts[i], received[i].Text)
				}
				if r.Texts[i] != sent[i].Text {
					replaced[x.Name]++
				}
			}
		}
	})
	want := map[string]int{"intercept/block-dedup-system-and-tools": 2, "live/generic-v1-responses-dedup": 1}
	if diff := cmp.Diff(want, replaced); diff != "" {
		t.Errorf("texts with references (-want +got):\n%s", diff)
	}
	if counted < 15 {
		t.Errorf("%d requests with counts, want more", counted)
	}
}
