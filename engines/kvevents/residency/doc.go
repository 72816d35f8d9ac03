// Package residency knows what of each request is still in an engine's prefix cache.
//
// An [Index] gets the requests that are sent, by their tokens, and takes the engine's events as a sink of package
// engines/kvevents. It answers what of a request, or of a prompt that is not sent yet, is resident ([Index.Resident],
// [Index.Prefix]), and reports what requests lose ([Update], [Events] for a contextpilot.Pilot). Engines name no
// request in their events and no tokens when they evict: the index cuts prompts into the same blocks, matches them by
// content, and takes the engine's block names as handles. No engine's hash has to be computed.
//
//	index := residency.New(residency.Config{Replica: "r0", OnUpdate: func(us []residency.Update) {
//		observe(residency.Events(contextpilot.Scope{}, us)...) // observe := pilot.Sink(scope)
//	}})
//	…                                                    // index is the Sink of a kvevents.Subscriber
//	index.Register(plan.RequestID, tokens, residency.Key{Salt: tenant})
//	…                                                    // send it
//	index.Served(plan.RequestID)                         // or Aborted
//
// One Index is one cache: of one engine, or of one data-parallel rank of it. A request that is pinned to
// one rank is registered with that one's; where it is not known which rank or engine serves it, [Group] joins them. [Scopes] gives each
// update the scope of its request, where one cache has several tenants.
//
// Tokens are those that the engine sees, after its chat template: ask it (prompt_token_ids in its answers, or its
// tokenize endpoint). If they are not, no block ever matches; [Stats.Mismatch] says so.
//
// A request is reported as lost only after [Index.Served] or [Index.Aborted], if some of its blocks were resident since
// it was registered and none is now. It is dropped then. Until it has ended, what it loses may come back.
//
// Nothing that the index says is needed for a right answer. Where it is wrong, for lack of events, a prompt is computed
// that was thought to be cached, or the other way round; [Index.Resident] reports whether all events are there.
//
// What the GPU gives up and a lower tier (CPU, disk) has is not lost ([Update.Loadable]). Engines do not always report when
// a lower tier drops a block, and nothing is reported then. [Index.Loadable] counts blocks in all tiers. Of a tier whose blocks
// are not as long as the GPU's only the names are counted. Of hybrid models only the first group of caches is followed, if it is
// one of full attention.
//
// Memory: about 160 bytes for each block, of the engine or of a request that waits for it or has lost it, up to
// [Config.MaxBlocks], and 130 for each request besides; until the first event shows the block size, 4 for each token of
// a prompt, up to [Config.MaxWaiting]. An event takes about 1.5 µs, a request of 1,500 tokens under 20 µs for
// prediction, registration, answer and dropping together.
package residency
