package ragpilottest

import (
	"maps"
	"strconv"
)

// responses answers OpenAI's responses.
func (r *reply) responses(stream bool) *response {
	whole := object{
		"id": r.id("resp"), "object": "response", "created_at": created, "status": "completed", "error": nil, "incomplete_details": nil,
		"instructions": nil, "model": r.model, "output": r.items(), "parallel_tool_calls": true, "temperature": 1, "top_p": 1,
		"tool_choice": "auto", "tools": []any{}, "metadata": object{},
		"usage": object{
			"input_tokens": r.Tokens, "input_tokens_details": object{"cached_tokens": r.Common}, "output_tokens": r.output,
			"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": r.Tokens + r.output,
		},
	}
	if !stream {
		return whole200(whole)
	}
	s := &response{}
	sequence := 0
	send := func(kind string, o object) {
		o["type"], o["sequence_number"] = kind, sequence
		sequence++
		s.event(kind, o)
	}
	begun := maps.Clone(whole)
	begun["status"], begun["output"], begun["usage"] = "in_progress", []any{}, nil
	send("response.created", object{"response": begun})
	send("response.in_progress", object{"response": begun})
	for i, item := range r.items() {
		if item["type"] == "message" {
			r.streamText(send, i, item)
			continue
		}
		r.streamCall(send, i, item)
	}
	send("response.completed", object{"response": whole})
	return s
}

// items are the message and the calls.
func (r *reply) items() []object {
	var out []object
	if r.text != "" || len(r.calls) == 0 {
		out = append(out, object{
			"id": r.id("msg"), "type": "message", "status": "completed", "role": "assistant",
			"content": []object{outputText(r.text)},
		})
	}
	for i, c := range r.calls {
		out = append(out, object{
			"id": r.id("fc") + "_" + strconv.Itoa(i), "type": "function_call", "status": "completed", "call_id": c.id, "name": c.name,
			"arguments": string(c.arguments),
		})
	}
	return out
}

func outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

func (r *reply) streamText(send func(string, object), i int, item object) {
	id := item["id"]
	at := func(o object) object {
		o["item_id"], o["output_index"], o["content_index"] = id, i, 0
		return o
	}
	send("response.output_item.added", object{"output_index": i, "item": object{
		"id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": []any{},
	}})
	send("response.content_part.added", at(object{"part": outputText("")}))
	for _, p := range r.pieces() {
		send("response.output_text.delta", at(object{"delta": p, "logprobs": []any{}}))
	}
	send("response.output_text.done", at(object{"text": r.text, "logprobs": []any{}}))
	send("response.content_part.done", at(object{"part": outputText(r.text)}))
	send("response.output_item.done", object{"output_index": i, "item": item})
}

func (r *reply) streamCall(send func(string, object), i int, item object) {
	id, name := item["id"], item["name"]
	send("response.output_item.added", object{"output_index": i, "item": object{
		"id": id, "type": "function_call", "status": "in_progress", "call_id": item["call_id"], "name": name, "arguments": "",
	}})
	for _, c := range r.calls {
		if c.id != item["call_id"] {
			continue
		}
		for _, half := range c.halves() {
			send("response.function_call_arguments.delta", object{"item_id": id, "output_index": i, "delta": half})
		}
	}
	send("response.function_call_arguments.done", object{"item_id": id, "output_index": i, "name": name, "arguments": item["arguments"]})
	send("response.output_item.done", object{"output_index": i, "item": item})
}
