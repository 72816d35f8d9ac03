package ragpilottest

// generate answers Gemini's generateContent, and streamGenerateContent as events or, without alt=sse, as a list.
func (r *reply) generate(stream, events bool) *response {
	part := func(parts []object, finish string) object {
		candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
		if finish != "" {
			candidate["finishReason"] = finish
		}
		return object{
			"candidates": []object{candidate}, "modelVersion": r.model, "responseId": r.id("resp"),
			"usageMetadata": object{
				"promptTokenCount": r.Tokens, "candidatesTokenCount": r.output, "totalTokenCount": r.Tokens + r.output,
				"cachedContentTokenCount": r.Common,
			},
		}
	}
	calls := make([]object, 0, len(r.calls))
	for _, c := range r.calls {
		o := object{"name": c.name, "args": c.arguments}
		if c.scripted {
			o["id"] = c.id
		}
		calls = append(calls, object{"functionCall": o})
	}
	if !stream {
		var parts []object
		if r.text != "" || len(calls) == 0 {
			parts = append(parts, object{"text": r.text})
		}
		return whole200(part(append(parts, calls...), "STOP"))
	}
	var chunks []object
	for _, p := range r.pieces() {
		chunks = append(chunks, part([]object{{"text": p}}, ""))
	}
	last := calls
	if len(last) == 0 {
		last = []object{{"text": ""}}
	}
	chunks = append(chunks, part(last, "STOP"))
	if !events {
		return whole200(chunks)
	}
	s := &response{}
	for _, c := range chunks {
		s.event("", c)
	}
	return s
}
