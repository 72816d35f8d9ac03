package golang_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/ragpilot/ragpilot/ci/sdk/stage"
)

func responseQuestion(model string, input ...responses.ResponseInputItemUnionParam) responses.ResponseNewParams {
	first := responses.ResponseInputItemParamOfMessage("What does it cost?", responses.EasyInputMessageRoleUser)
	return responses.ResponseNewParams{
		Model: model, Instructions: openai.String("You know „cheese“."),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: append([]responses.ResponseInputItemUnionParam{first}, input...)},
		Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction("search", map[string]any{"type": "object"}, false)},
	}
}

// lines is a tool result of many lines, each unlike the others.
func lines(t *testing.T, from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "%s: line %d of the file says %q\n", t.Name(), i, fmt.Sprint("value ", i*7919%1009))
	}
	return b.String()
}

// responseEvents reads a stream to its end: all events, the text of their pieces, the accumulated answer, and the one
// that the last event carries.
func responseEvents(t *testing.T, p place, params responses.ResponseNewParams) (events []string, text string, acc responses.ResponseAccumulator, last responses.Response) {
	t.Helper()
	client := p.openai()
	stream := client.Responses.NewStreaming(patient(t), params)
	defer stream.Close()
	for stream.Next() {
		event := stream.Current()
		if event.SequenceNumber != int64(len(events)) {
			t.Errorf("event %d has the number %d", len(events), event.SequenceNumber)
		}
		events = append(events, event.RawJSON())
		var same responses.ResponsesServerEventUnion // the accumulator is made for the same events over a WebSocket
		ok(t, json.Unmarshal([]byte(event.RawJSON()), &same))
		ok(t, acc.AddEvent(same))
		switch event.Type {
		case "response.output_text.delta":
			text += event.Delta
		case "response.completed":
			last = event.AsResponseCompleted().Response
		}
	}
	ok(t, stream.Err())
	return events, text, acc, last
}

func TestOpenAIResponses(t *testing.T) {
	t.Run("an answer and its usage", func(t *testing.T) {
		untouchedAlike(t, func(t *testing.T, p place) []string {
			client := p.openai()
			out, err := client.Responses.New(patient(t), responseQuestion("text"))
			ok(t, err)
			if out.OutputText() != answerText || out.Usage.InputTokensDetails.CachedTokens != 1920 {
				t.Errorf("%q, usage %+v", out.OutputText(), out.Usage)
			}
			return []string{out.RawJSON()}
		})
	})
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			untouchedAlike(t, func(t *testing.T, p place) []string {
				events, text, acc, last := responseEvents(t, p, responseQuestion(w.way+"text"))
				if got := acc.Snapshot(); text != answerText || got.OutputText() != answerText || got.TerminalEvent != "response.completed" || last.OutputText() != answerText {
					t.Errorf("pieces %q, accumulated %q until %s, at last %q", text, got.OutputText(), got.TerminalEvent, last.OutputText())
				}
				if len(events) != 11 || last.Usage.InputTokensDetails.CachedTokens != 1920 {
					t.Errorf("%d events, usage %+v", len(events), last.Usage)
				}
				return events
			})
		})
	}
	for _, stream := range []bool{false, true} {
		t.Run(map[bool]string{false: "an agent's tool calls, repeated lines left out", true: "an agent's tool calls, streamed"}[stream], func(t *testing.T) {
			there, through := alike(t, func(t *testing.T, p place) (out []string) {
				client := p.openai()
				var input []responses.ResponseInputItemUnionParam
				for step := range 4 {
					var answer responses.Response
					if stream {
						events, _, _, last := responseEvents(t, p, responseQuestion("agent", input...))
						out, answer = append(out, events...), last
					} else {
						whole, err := client.Responses.New(patient(t), responseQuestion("agent", input...))
						ok(t, err)
						out, answer = append(out, whole.RawJSON()), *whole
					}
					if step == 3 {
						if answer.OutputText() != answerText {
							t.Errorf("at last %q", answer.OutputText())
						}
						break
					}
					call := answer.Output[0].AsFunctionCall()
					if want := fmt.Sprintf(`{"query":"step %d","limit":3}`, step); call.Arguments != want {
						t.Errorf("arguments %s, want %s", call.Arguments, want)
					}
					result := responses.ResponseInputItemParamOfFunctionCallOutput(lines(t, 40*step, 40*step+200))
					result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
					param := call.ToParam()
					input = append(input, responses.ResponseInputItemUnionParam{OfFunctionCall: &param}, result)
				}
				return out
			})
			want, got := functionOutputs(t, there[3]), functionOutputs(t, through[3])
			same(t, "the body around the tool results", want.body, got.body)
			same(t, "the first tool result", want.texts[0], got.texts[0])
			for i := 1; i < 3; i++ {
				if len(got.texts[i]) > len(want.texts[i])*3/4 || !strings.Contains(got.texts[i], "identical to") {
					t.Errorf("tool result %d has %d of %d bytes:\n%s", i, len(got.texts[i]), len(want.texts[i]), got.texts[i])
				}
				for line := range strings.Lines(want.texts[i]) { // what was left out stands further up
					if !strings.Contains(strings.Join(got.texts[:i+1], ""), line) {
						t.Errorf("the line %q is lost", line)
					}
				}
			}
		})
	}
	t.Run("kept answers are continued, fetched and deleted", func(t *testing.T) {
		untouchedAlike(t, func(t *testing.T, p place) []string {
			client := p.openai()
			q := responses.ResponseNewParams{Model: "text", PreviousResponseID: openai.String("resp_fake"), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("And then?")}}
			next, err := client.Responses.New(patient(t), q)
			ok(t, err)
			kept, err := client.Responses.Get(patient(t), "resp_fake", responses.ResponseGetParams{})
			ok(t, err)
			ok(t, client.Responses.Delete(patient(t), "resp_fake"))
			return []string{next.RawJSON(), kept.RawJSON()}
		})
	})
	t.Run("over a WebSocket", func(t *testing.T) {
		_, through := alike(t, func(t *testing.T, p place) (out []string) {
			client := p.openai()
			connection, err := client.Responses.Connect(patient(t), responses.ResponseConnectionOptions{})
			ok(t, err)
			defer connection.Abort()
			for range 2 { // turns
				ok(t, connection.Create(patient(t), responses.ResponsesClientEventResponseCreateParam{Model: "text", Input: responses.ResponsesClientEventResponseCreateInputUnionParam{OfString: openai.String("What does it cost?")}}))
				var acc responses.ResponseAccumulator
				for acc.Snapshot().TerminalEvent == "" {
					event, err := connection.Recv(patient(t))
					ok(t, err)
					ok(t, acc.AddEvent(event))
					out = append(out, event.RawJSON())
				}
				if got := acc.Snapshot(); got.OutputText() != answerText {
					t.Errorf("accumulated %q", got.OutputText())
				}
			}
			ok(t, connection.Close())
			return out
		})
		if got := through[0].Header.Get("Authorization"); got != "Bearer "+stage.ClientKey {
			t.Errorf("connected with %q", got)
		}
	})
}

// outputs is a body of the Responses API and its tool results.
type outputs struct {
	body  map[string]any
	texts []string
}

func functionOutputs(t *testing.T, r stage.Request) (o outputs) {
	t.Helper()
	ok(t, json.Unmarshal([]byte(r.Body), &o.body))
	for _, item := range o.body["input"].([]any) {
		if item := item.(map[string]any); item["type"] == "function_call_output" {
			o.texts = append(o.texts, item["output"].(string))
			item["output"] = ""
		}
	}
	if len(o.texts) != 3 {
		t.Fatalf("%d tool results, want 3", len(o.texts))
	}
	return o
}
