// Package server serves an in-process engine (package engines/local) over HTTP, as an inference server would: with OpenAI's API for
// completions, and beside it what vLLM has, under vLLM's names. Whatever talks to a vLLM server can so be tried on any machine.
//
//	engine, err := local.Open(local.Config{Model: "model.gguf"})
//	…
//	api := server.New(engine, server.Config{})
//	err = http.ListenAndServe("127.0.0.1:8000", api)
//
// # Endpoints
//
//	POST /v1/chat/completions, /v1/completions   streamed and not
//	GET  /v1/models, /v1/models/{model}          with max_model_len
//	POST /tokenize, /detokenize                  a text, or a chat with its template
//	POST /reset_prefix_cache, /forget
//	GET  /health, /version, /metrics, /openapi.json
//	GET  /kv_event_sources                       where Config.Events publishes
//
// Of a completion's body these members count: model, messages (content as a text or a list of texts), prompt (a text,
// tokens, or a list of either), stream, stream_options.include_usage, max_tokens, max_completion_tokens, temperature,
// top_p, seed, stop, ignore_eos, cache_salt, context, request_id and return_token_ids. Members that would change the answer and
// are not understood are refused, unless they ask for what happens anyway; others are passed over. Two defaults are not
// OpenAI's: without a temperature answers are greedy, and a chat's answer has at most the engine's own number of
// tokens. The header X-Request-Id, or else request_id, comes back in the answer's id, as in vLLM.
//
// return_token_ids gives the prompt's tokens, not the answer's: the engine returns only its text.
//
// # When clients go
//
// A client that closes its connection, or takes nothing of its answer for Config.IOTimeout, ends its request; the
// engine's memory for it is free at the end of the step that it is in. Others do not wait for a slow client. One whose
// body has not come in that time gets a 408.
package server
