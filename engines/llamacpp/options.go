package llamacpp

import (
	"encoding/json"
	"maps"
	"strconv"

	"github.com/ragpilot/ragpilot/engines"
)

// options is what the members of a request's body mean for the cache.
type options struct {
	slot   int  // the slot that the caller chose, -1: none
	reuse  bool // cached tokens may be used
	salted bool // what it leaves in a slot is for requests with the same salt only
	simple bool // one answer, from the model without adapters, whose tokens lie in the slot afterwards
}

func readOptions(extra map[string]json.RawMessage) options {
	o := options{slot: -1, reuse: true, simple: true}
	read := func(name string, v any) bool { return json.Unmarshal(extra[name], v) == nil }
	if slot := -1; read("id_slot", &slot) && slot >= 0 {
		o.slot = slot
	}
	if cache := true; read("cache_prompt", &cache) {
		o.reuse = cache
	}
	for _, name := range []string{"n", "n_cmpl"} {
		if n := 1; read(name, &n) && n > 1 {
			o.simple = false
		}
	}
	if salt := ""; extra["cache_salt"] != nil && (!read("cache_salt", &salt) || salt != "") {
		o.salted = true
	}
	if _, lora := extra["lora"]; lora {
		o.simple = false
	}
	return o
}

// asking returns the request with the members that make the server report what it does: the IDs of generated tokens, how many
// there are, the slot and its length. What the caller set stays. at is the slot to pin the request to, -1: none.
func asking(req engines.Request, extra map[string]json.RawMessage, at int) engines.Request {
	more := map[string]json.RawMessage{
		"n_probs":             json.RawMessage("1"),
		"post_sampling_probs": json.RawMessage("true"), // taken from the sampler; the others cost a pass over the vocabulary
		"timings_per_token":   json.RawMessage("true"),
		"verbose":             json.RawMessage("true"),
		"response_fields":     json.RawMessage(`["id_slot","tokens_cached"]`), // of the whole of verbose
	}
	if at >= 0 {
		more["id_slot"] = strconv.AppendInt(nil, int64(at), 10)
	}
	if _, set := extra["logprobs"]; set {
		delete(more, "n_probs")
		delete(more, "post_sampling_probs")
	}
	maps.Copy(more, extra)
	maps.Copy(more, req.Extra) // also those that remove a member
	req.Extra = more
	return req
}
