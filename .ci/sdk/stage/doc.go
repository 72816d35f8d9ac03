// Package stage sets up what the official SDKs are tried against: the program as real processes, in front of its own
// simulated engine ("ragpilot bench upstream"), of a [Fake], and of the local engine ("ragpilot engine serve") if
// RAGPILOT_TINY_MODEL names a model for it (go run ./internal/testkit/tinymodel).
//
// The fake has no model. It answers as OpenAI's and Anthropic's APIs do, from the texts under answers/, whose shapes are
// those of the SDKs' types. A request's model says what happens to it: "SCRIPT" or "WAY/SCRIPT".
//
//	text      one answer in words
//	agent     a tool call for each of the first three steps, then the text
//
//	gzip      the answer is compressed
//	torn      written and flushed in pieces of 7 bytes
//	gate      one event, and the others once [Fake.Open] was called
//	hang      one event, then nothing until the client has gone; [Fake.Gone] tells
//	silent    nothing at all until the client has gone
//	cut       half of the answer, then the connection ends
//	error     half of the events, then one that says what went wrong
//	NNN       the status, in the API's error shape; 429 with Retry-After: 1
//	once-NNN  the same for the first request of a scenario only
//
// The two SDKs for Anthropic are of two generations: Go's asks for API version 2023-06-01 with x-api-key, Python's for
// 2026-10-21 with a bearer token. The fake answers both alike.
//
// Requests carry the name of their scenario in the header X-Scenario; under it the fake keeps what reached it.
package stage
