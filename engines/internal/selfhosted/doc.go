// Package selfhosted is the client that the packages engines/vllm and engines/sglang share. [Engine] sends the chats through
// engines/openai, asks for what these servers have beside chats, and detects what a server can do ([Features]). What differs
// between the two servers stands in a [Dialect].
//
// Smaller parts: [Version], [Schema] and [Support] (how a feature is known), [Samples] (the text of /metrics), [Salt] (tenants'
// cache salts), [PromptTokens] (the prompt's tokens in an answer), and [Endpoint] (addresses of event publishers).
package selfhosted
