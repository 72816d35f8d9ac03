package ragpilottest

// created is the time of all answers, in seconds since 1970, so that tests see the same ones.
const created = 1_750_000_000

// object is a value in JSON. Its members are written in the order of their names.
type object = map[string]any

// openAIUsage is the usage in OpenAI's chat completions and completions.
func (r *reply) openAIUsage() object {
	return object{
		"prompt_tokens": r.Tokens, "completion_tokens": r.output, "total_tokens": r.Tokens + r.output,
		"prompt_tokens_details": object{"cached_tokens": r.Common},
	}
}

func (r *reply) finish() string {
	if len(r.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// chat answers OpenAI's chat completions.
func (r *reply) chat(stream, usage bool) *response {
	head := func(name string, choices []object) object {
		return object{"id": r.id("chatcmpl"), "object": name, "created": created, "model": r.model, "choices": choices}
	}
	if !stream {
		message := object{"role": "assistant", "content": r.text}
		if len(r.calls) > 0 {
			message["tool_calls"] = r.chatCalls()
			if r.text == "" {
				message["content"] = nil
			}
		}
		whole := head("chat.completion", []object{{"index": 0, "message": message, "finish_reason": r.finish()}})
		whole["usage"] = r.openAIUsage()
		return whole200(whole)
	}
	s := &response{}
	chunk := func(delta object, finish any) {
		s.event("", head("chat.completion.chunk", []object{{"index": 0, "delta": delta, "finish_reason": finish}}))
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	for _, p := range r.pieces() {
		chunk(object{"content": p}, nil)
	}
	for i, c := range r.chatCalls() {
		function := c["function"].(object)
		c["index"], c["function"] = i, object{"name": function["name"], "arguments": ""}
		chunk(object{"tool_calls": []object{c}}, nil)
		for _, half := range r.calls[i].halves() {
			chunk(object{"tool_calls": []object{{"index": i, "function": object{"arguments": half}}}}, nil)
		}
	}
	chunk(object{}, r.finish())
	if usage {
		last := head("chat.completion.chunk", []object{})
		last["usage"] = r.openAIUsage()
		s.event("", last)
	}
	s.text("data: [DONE]\n\n")
	return s
}

func (r *reply) chatCalls() []object {
	out := make([]object, 0, len(r.calls))
	for _, c := range r.calls {
		out = append(out, object{"id": c.id, "type": "function", "function": object{"name": c.name, "arguments": string(c.arguments)}})
	}
	return out
}

// completion answers OpenAI's completions, which know no calls.
func (r *reply) completion(stream, usage bool) *response {
	head := func(choices []object) object {
		return object{"id": r.id("cmpl"), "object": "text_completion", "created": created, "model": r.model, "choices": choices}
	}
	if !stream {
		whole := head([]object{{"index": 0, "text": r.text, "logprobs": nil, "finish_reason": "stop"}})
		whole["usage"] = r.openAIUsage()
		return whole200(whole)
	}
	s := &response{}
	for _, p := range r.pieces() {
		s.event("", head([]object{{"index": 0, "text": p, "logprobs": nil, "finish_reason": nil}}))
	}
	s.event("", head([]object{{"index": 0, "text": "", "logprobs": nil, "finish_reason": "stop"}}))
	if usage {
		last := head([]object{})
		last["usage"] = r.openAIUsage()
		s.event("", last)
	}
	s.text("data: [DONE]\n\n")
	return s
}
