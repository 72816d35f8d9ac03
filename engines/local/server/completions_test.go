package server_test

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const chatPath, textPath = "/v1/chat/completions", "/v1/completions"

// ask is a chat whose answer has 12 tokens.
const ask = `"messages":[{"role":"system","content":"Be short."},{"role":"user","content":"What is the tide, and why are the boats in the harbour?"}],"max_tokens":12,"ignore_eos":true`

// A whole answer and a streamed one are the same text with the same counts, in the shapes of OpenAI's API.
func TestShapes(t *testing.T) {
	for _, c := range []struct{ name, path, body string }{
		{"chat", chatPath, ask},
		{"completion", textPath, `"prompt":"The tide is in the harbour and the boats are out.","max_tokens":12,"ignore_eos":true`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, nil)
			chat := c.path == chatPath
			whole := r.post(t, c.path, `{`+c.body+`,"model":"tiny","cache_salt":"a"}`, "X-Request-Id", "abc").object(t)
			text, object, prefix := at(whole, "choices", 0, "text"), "text_completion", "cmpl-"
			if chat {
				text, object, prefix = at(whole, "choices", 0, "message", "content"), "chat.completion", "chatcmpl-"
			}
			if whole["id"] != prefix+"abc" || whole["object"] != object || whole["model"] != "tiny" ||
				at(whole, "choices", 0, "finish_reason") != "length" ||
				text == "" {
				t.Errorf("%v", whole)
			}
			prompt := at(whole, "usage", "prompt_tokens").(float64)
			want := map[string]any{
				"prompt_tokens":         prompt,
				"completion_tokens":     12.,
				"total_tokens":          prompt + 12,
				"prompt_tokens_details": map[string]any{"cached_tokens": 0.},
			}
			if fmt.Sprint(whole["usage"]) != fmt.Sprint(want) {
				t.Errorf("usage %v, want %v", whole["usage"], want)
			}
			streamed := r.post(t, c.path, `{`+c.body+`,"request_id":"b","cache_salt":"a","stream":true,"stream_options":{"include_usage":true}}`)
			if got := streamed.header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
				t.Errorf("content type %q", got)
			}
			var pieces strings.Builder
			chunks := streamed.events(t)
			for i, e := range chunks {
				if e["id"] != prefix+"b" {
					t.Errorf("chunk %d: %v", i, e)
				}
				if chat {
					s, _ := at(e, "choices", 0, "delta", "content").(string)
					pieces.WriteString(s)
				} else if s, ok := at(e, "choices", 0, "text").(string); ok {
					pieces.WriteString(s)
				}
			}
			if pieces.String() != text {
				t.Errorf("streamed %q, whole %q", pieces.String(), text)
			}
			if chat && at(chunks[0], "choices", 0, "delta", "role") != "assistant" {
				t.Errorf("first chunk %v", chunks[0])
			}
			last := chunks[len(chunks)-1]
			cached := float64((int(prompt) - 1) / 16 * 16)
			if len(last["choices"].([]any)) != 0 || at(last, "usage", "prompt_tokens_details", "cached_tokens") != cached ||
				at(last, "usage", "total_tokens") != prompt+12 {
				t.Errorf("last chunk %v, want %v cached", last, cached)
			}
			if at(chunks[len(chunks)-2], "choices", 0, "finish_reason") != "length" {
				t.Errorf("the chunk before %v", chunks[len(chunks)-2])
			}
			other := r.post(t, c.path, `{`+c.body+`,"cache_salt":"b"}`).object(t)
			if at(other, "usage", "prompt_tokens_details", "cached_tokens") != 0. {
				t.Errorf("with another salt %v", other["usage"])
			}
			without := r.post(t, c.path, `{`+c.body+`,"stream":true}`).events(t)
			if e := without[len(without)-1]; e["usage"] != nil || len(e["choices"].([]any)) != 1 {
				t.Errorf("without usage %v", e)
			}
		})
	}
}

// The same prompt in each of its forms, and all of them at once.
func TestPrompts(t *testing.T) {
	r := start(t, nil)
	const text = "The tide is in the harbour, and the boats are out."
	tokens := r.engine.Tokenize(text)
	list := strings.Join(strings.Fields(fmt.Sprint(tokens)), ",")
	answer := func(prompt string) string {
		t.Helper()
		o := r.post(t, textPath, `{"prompt":`+prompt+`,"ignore_eos":true}`).object(t)
		if at(o, "usage", "prompt_tokens") != float64(len(tokens)) || at(o, "usage", "completion_tokens") != 16. { // as many as OpenAI's
			t.Errorf("%s: %v", prompt, o)
		}
		s, _ := at(o, "choices", 0, "text").(string)
		return s
	}
	want := answer(quote(text))
	for _, prompt := range []string{list, "[" + quote(text) + "]", "[" + list + "]"} {
		if got := answer(prompt); got != want {
			t.Errorf("%s: %q, want %q", prompt, got, want)
		}
	}
	other := answer(quote(strings.Replace(text, "boats", "coats", 1)))
	several := `{"ignore_eos":true,"prompt":[` + quote(
		text,
	) + `,` + quote(
		strings.Replace(text, "boats", "coats", 1),
	) + `,` + list + `],"return_token_ids":true`
	o := r.post(t, textPath, several+`}`).object(t)
	for i, w := range []string{want, other, want} {
		if at(o, "choices", i, "text") != w || at(o, "choices", i, "index") != float64(i) ||
			len(at(o, "choices", i, "prompt_token_ids").([]any)) != len(tokens) {
			t.Errorf("choice %d: %v, want %q", i, at(o, "choices", i), w)
		}
	}
	var got [3]string
	for _, e := range r.post(t, textPath, several+`,"stream":true}`).events(t) {
		s, _ := at(e, "choices", 0, "text").(string)
		got[int(at(e, "choices", 0, "index").(float64))] += s
	}
	if got != [3]string{want, other, want} {
		t.Errorf("streamed %q", got)
	}
	parts := r.post(t, chatPath, `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],"max_tokens":1,"return_token_ids":true}`).
		object(t)
	plain := r.post(t, chatPath, `{"messages":[{"role":"user","content":"a\nb"}],"max_completion_tokens":1,"return_token_ids":true}`).object(t)
	if fmt.Sprint(parts["prompt_token_ids"]) != fmt.Sprint(plain["prompt_token_ids"]) || plain["prompt_token_ids"] == nil {
		t.Errorf("%v\n%v", parts, plain)
	}
}

// Parameters reach the engine.
func TestSampling(t *testing.T) {
	r := start(t, nil)
	text := func(more string) string {
		t.Helper()
		o := r.post(t, textPath, `{"prompt":"The tide is","max_tokens":30,"ignore_eos":true`+more+`}`).object(t)
		s, ok := at(o, "choices", 0, "text").(string)
		if !ok {
			t.Fatal(o)
		}
		return s
	}
	greedy := text("")
	if text(`,"temperature":0`) != greedy {
		t.Error("temperature 0 is not greedy")
	}
	a, b, c := text(`,"temperature":1.5,"seed":1`), text(`,"temperature":1.5,"seed":1`), text(`,"temperature":1.5,"seed":2`)
	if a != b || a == c || a == greedy {
		t.Errorf("seeds 1, 1, 2 and greedy: %q, %q, %q, %q", a, b, c, greedy)
	}
	if text(`,"temperature":1.5,"seed":3,"top_p":0.0001`) != greedy {
		t.Error("the smallest nucleus is not greedy")
	}
	if text(`,"repetition_penalty":1.0,"no_repeat_ngram_size":0`) != greedy {
		t.Error("penalties that are off change the answer")
	}
	for _, penalty := range []string{"repetition_penalty", "no_repeat_ngram_size"} {
		if text(`,"`+penalty+`":3`) == greedy {
			t.Errorf("%s 3 changes nothing", penalty)
		}
	}
	at := strings.IndexAny(greedy[1:], "abcdefghijklmnopqrstuvwxyz") + 1
	stop := greedy[at : at+1]
	if got := text(`,"stop":[` + quote(stop) + `]`); got != greedy[:strings.Index(greedy, stop)] {
		t.Errorf("with stop %q: %q of %q", stop, got, greedy)
	}
}

// What is wrong with a request is said by the member's name and value.
func TestRefused(t *testing.T) {
	r := start(t, func(s *settings) { s.server.MaxBody = 4000 })
	const m = `"messages":[{"role":"user","content":"a"}]`
	long := strings.Repeat("1,", 1100) + "1"
	for _, c := range []struct {
		name, path, body string
		status           int
		param, want      string
	}{
		{"no JSON", chatPath, `{"messages":`, 400, "", "not a JSON object"},
		{"nothing", chatPath, ``, 400, "", "not a JSON object"},
		{"a list", chatPath, `[1]`, 400, "", "not a JSON object"},
		{"null", chatPath, `null`, 400, "", "null"},
		{"too large", chatPath, `{"messages":[{"role":"user","content":"` + strings.Repeat("a", 5000) + `"}]}`, 413, "", "4000"},
		{"no messages", chatPath, `{}`, 400, "messages", "messages"},
		{"messages a text", chatPath, `{"messages":"a"}`, 400, "messages", `messages "a"`},
		{"no role", chatPath, `{"messages":[{"content":"a"}]}`, 400, "messages", "messages[0].role"},
		{"a picture", chatPath, `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, 400, "messages", `messages[0].content[0].type "image_url"`},
		{"a number as content", chatPath, `{"messages":[{"role":"user","content":7}]}`, 400, "messages", "messages[0].content 7"},
		{"tool calls", chatPath, `{"messages":[{"role":"assistant","tool_calls":[{"id":"x"}]}]}`, 400, "messages", "tool_calls"},
		{"a function's call", chatPath, `{"messages":[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}]}`, 400, "messages", "function_call {"},
		{"another model", chatPath, `{"model":"gpt-5",` + m + `}`, 404, "model", `"gpt-5"`},
		{"model a number", chatPath, `{"model":7,` + m + `}`, 400, "model", "model 7"},
		{"stream a text", chatPath, `{"stream":"yes",` + m + `}`, 400, "stream", `stream "yes"`},
		{"n", chatPath, `{"n":2,` + m + `}`, 400, "n", "n 2: not supported"},
		{"logprobs", chatPath, `{"logprobs":true,` + m + `}`, 400, "logprobs", "logprobs true"},
		{"logprobs of a completion", textPath, `{"logprobs":1,"prompt":"a"}`, 400, "logprobs", "logprobs 1"},
		{"log probabilities of the prompt", textPath, `{"prompt_logprobs":1,"prompt":"a"}`, 400, "prompt_logprobs", "prompt_logprobs 1"},
		{"members of the template", chatPath, `{"chat_template_kwargs":{"enable_thinking":false},` + m + `}`, 400, "chat_template_kwargs", "chat_template_kwargs {"},
		{"bad words", chatPath, `{"bad_words":["a"],` + m + `}`, 400, "bad_words", `bad_words ["a"]`},
		{"allowed tokens", chatPath, `{"allowed_token_ids":[1],` + m + `}`, 400, "allowed_token_ids", "allowed_token_ids [1]"},
		{"the stop text too", chatPath, `{"include_stop_str_in_output":true,` + m + `}`, 400, "include_stop_str_in_output", "include_stop_str_in_output true"},
		{"special tokens", chatPath, `{"skip_special_tokens":false,` + m + `}`, 400, "skip_special_tokens", "skip_special_tokens false"},
		{"reasoning", chatPath, `{"reasoning_effort":"high",` + m + `}`, 400, "reasoning_effort", `reasoning_effort "high"`},
		{"documents", chatPath, `{"documents":[{"text":"a"}],` + m + `}`, 400, "documents", "documents [{"},
		{"a tag", textPath, `{"structural_tag":"{}","prompt":"a"}`, 400, "structural_tag", "structural_tag"},
		{"whitespace of a guided answer", textPath, `{"guided_whitespace_pattern":" ","prompt":"a"}`, 400, "guided_whitespace_pattern", "guided_whitespace_pattern"},
		{"processors", textPath, `{"logits_processors":["a"],"prompt":"a"}`, 400, "logits_processors", "logits_processors"},
		{"usage all the time", chatPath, `{"stream":true,"stream_options":{"continuous_usage_stats":true},` + m + `}`, 400, "stream_options", "stream_options.continuous_usage_stats true"},
		{"a template's settings for tokens", "/tokenize", `{"chat_template_kwargs":{"a":1},` + m + `}`, 400, "chat_template_kwargs", "chat_template_kwargs"},
		{"tools", chatPath, `{"tools":[{"type":"function"}],` + m + `}`, 400, "tools", "tools"},
		{"a format", chatPath, `{"response_format":{"type":"json_object"},` + m + `}`, 400, "response_format", "json_object"},
		{"a penalty", chatPath, `{"presence_penalty":0.5,` + m + `}`, 400, "presence_penalty", "presence_penalty 0.5"},
		{"hot", chatPath, `{"temperature":-1,` + m + `}`, 400, "temperature", "temperature -1"},
		{"a repetition penalty of 0", chatPath, `{"repetition_penalty":0,` + m + `}`, 400, "repetition_penalty", "repetition_penalty 0: want 0.01 to 100"},
		{"a penalty that is a text", chatPath, `{"repetition_penalty":"x",` + m + `}`, 400, "repetition_penalty", `repetition_penalty "x": want a number`},
		{"n-grams below 0", chatPath, `{"no_repeat_ngram_size":-1,` + m + `}`, 400, "no_repeat_ngram_size", "no_repeat_ngram_size -1: want 0 or more"},
		{"half an n-gram", chatPath, `{"no_repeat_ngram_size":1.5,` + m + `}`, 400, "no_repeat_ngram_size", "no_repeat_ngram_size 1.5: want a whole number"},
		{"temperature a text", chatPath, `{"temperature":"hot",` + m + `}`, 400, "temperature", `temperature "hot": want a number`},
		{"half a token as limit", chatPath, `{"max_tokens":1.5,` + m + `}`, 400, "max_tokens", "max_tokens 1.5"},
		{"a salt that is a list", chatPath, `{"cache_salt":[],` + m + `}`, 400, "cache_salt", "cache_salt []"},
		{"top_p", chatPath, `{"top_p":0,` + m + `}`, 400, "top_p", "top_p 0"},
		{"no room for an answer", chatPath, `{"max_tokens":0,` + m + `}`, 400, "max_tokens", "max_tokens 0"},
		{"too long an answer", chatPath, `{"max_tokens":5000,` + m + `}`, 400, "max_tokens", "max_tokens 5000"},
		{"an empty stop", chatPath, `{"stop":["a",""],` + m + `}`, 400, "stop", "stop"},
		{"many stops", chatPath, `{"stop":[` + strings.Repeat(`"a",`, 64) + `"a"],` + m + `}`, 400, "stop", "65"},
		{"a long ID", chatPath, `{"request_id":"` + strings.Repeat("a", 600) + `",` + m + `}`, 400, "request_id", "600"},
		{"no prompt", textPath, `{}`, 400, "prompt", "prompt"},
		{"an empty prompt", textPath, `{"prompt":""}`, 400, "prompt", "prompt"},
		{"no prompts", textPath, `{"prompt":[]}`, 400, "prompt", "prompt []"},
		{"an object", textPath, `{"prompt":{}}`, 400, "prompt", "prompt {}"},
		{"mixed tokens", textPath, `{"prompt":[1,"a"]}`, 400, "prompt", `prompt [1,"a"]`},
		{"mixed prompts", textPath, `{"prompt":["a",null]}`, 400, "prompt", "prompt[1] null"},
		{"a token below 0", textPath, `{"prompt":[-1]}`, 400, "prompt", "prompt[0] -1"},
		{"an unknown token", textPath, `{"prompt":[1,9999]}`, 400, "prompt", "9999"},
		{"half a token", textPath, `{"prompt":[1.5]}`, 400, "prompt", "prompt [1.5]"},
		{"too long a prompt", textPath, `{"prompt":[` + long + `]}`, 400, "prompt", "1101"},
		{"a bad one of two", textPath, `{"prompt":[[1,2],[9999]],"stream":true}`, 400, "prompt", "9999"},
		{"no path", "/v1/embeddings", `{}`, 404, "", "/v1/embeddings"},
		{"no such method", "/v1/models", `{}`, 405, "", "GET"},
		{"tokens of nothing", "/tokenize", `{}`, 400, "prompt", "prompt or messages"},
		{"tokens of both", "/tokenize", `{"prompt":"a",` + m + `}`, 400, "prompt", "not both"},
		{"no answer begun", "/tokenize", `{"add_generation_prompt":false,` + m + `}`, 400, "add_generation_prompt", "add_generation_prompt false"},
		{"text of nothing", "/detokenize", `{}`, 400, "tokens", "tokens"},
		{"text of a text", "/detokenize", `{"tokens":"a"}`, 400, "tokens", `tokens "a"`},
		{"tokens of another model", "/tokenize", `{"model":"x","prompt":"a"}`, 404, "model", `"x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := r.post(t, c.path, c.body)
			o := got.object(t)
			message, _ := at(o, "error", "message").(string)
			param, _ := at(o, "error", "param").(string)
			if got.status != c.status || at(o, "error", "code") != float64(c.status) || at(o, "error", "type") == "" || param != c.param ||
				!strings.Contains(message, c.want) {
				t.Errorf("status %d: %s\nwant %d about %q with %q", got.status, got.body, c.status, c.param, c.want)
			}
			if strings.Contains(message, "engine") || len(message) > 600 {
				t.Errorf("the message %q shows what is inside", message)
			}
		})
	}
	await(t, "free blocks", func() bool { s := r.engine.Stats(); return s.UsedBlocks+s.Running+s.Waiting == 0 })
}

// What asks for what happens anyway is taken.
func TestAccepted(t *testing.T) {
	r := start(t, nil)
	for _, more := range []string{
		`"n":1,"presence_penalty":0,"frequency_penalty":0.0,"logit_bias":{},"logprobs":false,"tools":[],"tool_choice":"auto","response_format":{"type":"text"}`,
		`"chat_template_kwargs":{},"bad_words":[],"allowed_token_ids":[],"include_stop_str_in_output":false,"skip_special_tokens":true,"documents":[],"stream_options":{"continuous_usage_stats":false}`,
		`"tools":null,"stop":null,"stream":null,"max_tokens":null,"max_completion_tokens":2,"stream_options":null,"cache_salt":null,"seed":null,"temperature":null,"user":"u","metadata":{"a":"b"}`,
		`"model":"","stop":"zebra","top_p":1,"top_k":-1,"rid":["x"],"unheard_of":[1,{}]`,
	} {
		if got := r.post(t, chatPath, `{"messages":[{"role":"developer","content":null},{"role":"tool","content":"a"}],"max_tokens":1,`+more+`}`); got.status != 200 {
			t.Errorf("%s: status %d: %s", more, got.status, got.body)
		}
	}
}

// A text that cannot fit is refused before it is tokenized, which would take many times its memory.
func TestTooLongToTokenize(t *testing.T) {
	r := start(t, nil)
	long := strings.Repeat("a", 3<<20)
	for path, body := range map[string]string{
		chatPath: `{"messages":[{"role":"user","content":"` + long + `"}]}`, textPath: `{"prompt":["` + long + `"]}`, "/tokenize": `{"prompt":"` + long + `"}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := r.post(t, path, body)
		runtime.ReadMemStats(&after)
		if got.status != http.StatusBadRequest || !strings.Contains(string(got.body), "bytes") || after.TotalAlloc-before.TotalAlloc > 100<<20 {
			t.Errorf("%s: status %d, %.200s, %d MB were taken", path, got.status, got.body, (after.TotalAlloc-before.TotalAlloc)>>20)
		}
	}
}

// A model whose texts begin with a token: it stands there once, also if the text has it, and not if the request does not want it.
func TestFirstToken(t *testing.T) {
	r := start(t, func(s *settings) { s.model.AddBOS = true })
	const first = "<|im_start|>"
	bare := r.engine.Tokenize("The tide")[1:]
	whole := append([]int32{1}, bare...)
	for _, c := range []struct {
		name, prompt, more string
		want               []int32
	}{
		{"added", "The tide", "", whole},
		{"written", first + "The tide", "", whole},
		{"not wanted", "The tide", `,"add_special_tokens":false`, bare},
		{"written, and no other wanted", first + "The tide", `,"add_special_tokens":false`, whole},
		{"written twice", first + first + "The tide", `,"add_special_tokens":false`, append([]int32{1}, whole...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := `{"prompt":` + quote(c.prompt) + c.more
			if got := r.post(t, "/tokenize", body+`}`).object(t)["tokens"]; fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("tokens %v, want %v", got, c.want)
			}
			o := r.post(t, textPath, body+`,"max_tokens":1,"return_token_ids":true}`).object(t)
			if got := at(o, "choices", 0, "prompt_token_ids"); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("prompt %v, want %v", got, c.want)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	r := start(t, nil)
	const text = "Ebbe & <Flut> 🌊 at 6:15"
	got := r.post(t, "/tokenize", `{"model":"tiny","prompt":`+quote(text)+`,"return_token_strs":true}`).object(t)
	tokens := got["tokens"].([]any)
	if got["count"] != float64(len(tokens)) || got["max_model_len"] != float64(r.engine.Context()) || len(tokens) == 0 ||
		len(got["token_strs"].([]any)) != len(tokens) {
		t.Errorf("%v", got)
	}
	list := strings.Join(strings.Fields(fmt.Sprint(tokens)), ",")
	if back := r.post(t, "/detokenize", `{"tokens":`+list+`}`).object(t); back["prompt"] != text {
		t.Errorf("%v", back)
	}
	empty := r.post(t, "/tokenize", `{"prompt":""}`).object(t)
	if empty["count"] != 0. || empty["tokens"] == nil {
		t.Errorf("%v", empty)
	}
	chat := r.post(t, "/tokenize", `{`+ask+`}`).object(t)["tokens"].([]any)
	used := r.post(t, chatPath, `{`+ask+`,"return_token_ids":true}`).object(t)["prompt_token_ids"].([]any)
	if !slices.Equal(chat, used) {
		t.Errorf("%v\n%v", chat, used)
	}
}
