// Package mem0 is a client of servers that speak Mem0's REST API, as a [github.com/ragpilot/ragpilot/memory.Store]: Mem0's own
// server, its hosted service, and ragpilot serve.
//
//	store, err := mem0.New("http://127.0.0.1:8888", mem0.Options{Dialect: mem0.SelfHosted})
//
// Which routes and shapes a server has is not guessed, see [Dialect]. A remote store decides itself what it extracts: the
// only [github.com/ragpilot/ragpilot/memory.Extractor]s that can be asked for are Everything, and Verbatim, whose rule is
// applied here. Its history keeps texts that were deleted, or not, as it likes; conversations and exports are not offered.
package mem0
