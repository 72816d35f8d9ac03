// Package follow joins a server's cache events with the requests that are sent to it: it is the source that engines/vllm and
// engines/sglang take their evictions from.
//
//	follower, err := follow.New(follow.Config{Source: kvevents.Source{Name: "r0", Endpoint: found.Endpoint, Replay: found.Replay}})
//	engine, err := vllm.New(vllm.Config{Server: server, PromptTokens: true, OnPrompt: func(p vllm.Prompt) {
//		follower.Prompt(p.RequestID, p.Tokens, residency.Key{Salt: p.Salt})
//	}})
//	engine.Subscribe(follower.Answered)
//	engine.Subscribe(pilot.Sink(scope))
//	go engine.Follow(ctx, follower)
//	...
//	if _, err := engine.Generate(ctx, request, onText); err != nil {
//		follower.Aborted(request.ID)
//	}
//
// A request is reported as lost only once it has ended, since until then its first blocks may still be on their way: engines report
// their answers to the follower, and the program reports requests that ended without one ([Follower.Aborted]). A request
// with neither is kept until there are too many, and it is the oldest.
//
// A server with several ranks has a source for each (Config.Sources), and one with several tenants needs the scope of each prompt
// ([Follower.PromptIn]).
//
// From then on the pilot hears of evictions per request, whichever of the engine's messages reported them. See package residency for
// what is counted, and package kvevents for what happens when messages are lost.
package follow
