// Package contextpilot lays out retrieved blocks in prompts so that an inference engine's prefix cache is reused:
// blocks that earlier prompts began with come first, and blocks that a conversation shows already become
// references.
//
//	 retriever                                        engine
//	     │ blocks, best first                            ▲ prompt        │ events
//	     ▼                                               │               ▼
//	┌─────────┐   ┌───────────────────────────────┐   ┌──────┐   ┌───────────────┐
//	│ Request │ → │ index → dedup → reorder →     │ → │ Plan │   │ Pilot.Observe │
//	└─────────┘   │ annotate            (Pilot)   │   └──────┘   └───────┬───────┘
//	              └───────────────▲───────────────┘                      │
//	                              └── one index per Scope ◄──────────────┘
//
// # Types to know
//
//   - [Pilot] plans requests, alone ([Pilot.Plan]) or many together ([Pilot.PlanBatch]), and keeps one index for
//     each [Scope] of what that engine's cache holds.
//   - [Request] is one prompt to be planned: its [Block]s in the retriever's order, in Prior the messages that are sent
//     again, and in Behind the [Position] behind them.
//   - [Plan] has the order, the references, what was left out, the notes for the model, and the part of the prompt
//     that is expected in the cache. It renders itself: [Plan.Context], [Plan.Prompt].
//   - [Event] is what an engine reports; [Pilot.Observe] keeps the index true with it.
//   - [Policy] chooses the order. [PolicyNames] lists the built-in ones.
//   - [Config] sets limits and wording. Its zero value is the recommended setup.
//
// # Files
//
//	pilot.go       Pilot, and the stages in their order
//	index.go       blocks get keys and labels; dedup.go finds those that are shown already
//	reorder.go     a policy chooses the order: reorder_policy.go, _best*.go, _paper.go, _simple.go; reorder_limits.go bounds it
//	nearest.go     the best block goes next to the question, or is shown once more there
//	annotate.go    references and order notes; room.go leaves out what does not fit
//	scope*.go      the index of each cache; observe.go what engines report
//	position.go    what a conversation has shown; match.go, batch.go, plan.go, explain.go what callers get
//
// # Use
//
//	pilot, err := contextpilot.New(contextpilot.Config{})
//	if err != nil {
//		return err
//	}
//	plan := pilot.Plan(contextpilot.Request{
//		Query: question, Blocks: retrieved, Prior: messages, Behind: position,
//	})
//	prompt := plan.Prompt(question)
//	answer := send(plan.RequestID, messages, prompt)
//	pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID})
//	messages, position = append(messages, prompt, answer), plan.End
//
// # Caveats
//
//   - Plan returns no error, because reuse must not fail a request. After a fault the plan is retrieval order with
//     every block in full, whatever the budget; [Plan].Fault says why and [Stats] counts it.
//   - Texts go into the prompt as they are. Markup in a text cannot end its block or begin another one (it is fenced),
//     but what a text says to the model is the caller's to judge.
//   - A reference is made only to a block that stands in Prior, word for word as it was rendered, under a label that
//     means nothing else. So Prior must be what is really sent. A client that leaves Prior or Behind empty gets every
//     block in full, always. The pilot itself remembers no conversation.
//   - A [Key] names an ID together with its text: a block whose text has changed is another block, for the index as for
//     the engine's cache. Equal texts under two IDs have two keys, but count as shown once ([DedupContent]).
//   - Give blocks stable IDs. They are the labels under which the model sees and cites blocks, and a label that changes
//     breaks the prefix.
//   - The index is a belief. It is corrected by events and bounded by Config.Capacity; a wrong belief costs computing
//     time and never changes what is sent beside its order.
package contextpilot
