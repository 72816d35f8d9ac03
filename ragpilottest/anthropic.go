package ragpilottest

// messages answers Anthropic's messages.
func (r *reply) messages(stream bool) *response {
	blocks := []object{}
	if r.text != "" {
		blocks = append(blocks, object{"type": "text", "text": r.text})
	}
	stop := "end_turn"
	for _, c := range r.calls {
		blocks = append(blocks, object{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments})
		stop = "tool_use"
	}
	usage := func(output int) object {
		return object{
			"input_tokens": r.Tokens - r.Common, "cache_creation_input_tokens": 0, "cache_read_input_tokens": r.Common,
			"output_tokens": output,
		}
	}
	message := func(content []object, stop any, output int) object {
		return object{
			"id": r.id("msg"), "type": "message", "role": "assistant", "model": r.model, "content": content, "stop_reason": stop,
			"stop_sequence": nil, "usage": usage(output),
		}
	}
	if !stream {
		return whole200(message(blocks, stop, r.output))
	}
	s := &response{}
	send := func(kind string, o object) {
		o["type"] = kind
		s.event(kind, o)
	}
	send("message_start", object{"message": message([]object{}, nil, 1)})
	for i, b := range blocks {
		delta := func(o object) { send("content_block_delta", object{"index": i, "delta": o}) }
		if b["type"] == "text" {
			send("content_block_start", object{"index": i, "content_block": object{"type": "text", "text": ""}})
			for _, p := range r.pieces() {
				delta(object{"type": "text_delta", "text": p})
			}
		} else {
			send("content_block_start", object{"index": i, "content_block": object{
				"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{},
			}})
			c := r.calls[i-(len(blocks)-len(r.calls))]
			for _, half := range c.halves() {
				delta(object{"type": "input_json_delta", "partial_json": half})
			}
		}
		send("content_block_stop", object{"index": i})
	}
	send("message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": usage(r.output)})
	send("message_stop", object{})
	return s
}
