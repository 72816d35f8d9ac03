// Package cloudcache knows the prompt caches of cloud providers: where to mark a prompt so that the provider keeps
// its beginning, what the provider probably holds by now, and what that has saved.
//
//	p, err := cloudcache.New(cloudcache.Options{Provider: "anthropic", Key: key})
//	body = p.Mark(path, body)         // cache breakpoints; every other byte stays
//	handle := p.Sent(tenant, path, body)      // the prefixes the provider may find or keep
//	result := p.Answered(handle, usage)       // as header X-ContextPilot-Cloud-Cache
//	stats := p.Stats(tenant)                  // as GET /cloud/stats
//
// A cache entry is the prefix of a prompt in the order tools, system, messages. Anthropic and MiniMax write entries where
// the request is marked (at most 4 times) and look for earlier ones at the marks and some 20 blocks in front of each; a
// written token costs 1.25 times as much as a plain one (2 times if it is to stay an hour), a read one a tenth. Prefixes
// below 1,024 tokens (4,096 for some models) are not cached, and marks on them cost nothing. OpenAI caches by itself
// from 1,024 tokens on; a request can only ask for a longer stay and name what it shares.
//
// What the provider holds is believed, not known: entries end with their time to live, and answers correct the belief.
//
// The JSON shapes are those of the ContextPilot 0.4.2 server; golden_test.go lists the members whose values differ.
package cloudcache
