// Package cachewatch joins the prompts that the proxy forwards with what engines say of their caches, so that the index of
// prompts hears which of them an engine has dropped.
//
// A [Follower] keeps a subscription to each engine's KV-cache events (engines/kvevents) and an index of what is resident
// (engines/kvevents/residency). The proxy reports prompts to it ([Follower.Follow]); their tokens, which match them with events,
// come with the answer or from the engine's tokenizer. What a prompt has lost is reported back to the proxy, in the
// pilot's count of tokens and in the scope of the prompt's own tenant.
//
// Nothing here is needed for an answer: an engine that cannot be reached, events that are missed, tokens that do not come
// cost predictions, and are counted and logged.
package cachewatch
