// Package mcp offers a retriever and a memory as tools of a Model Context Protocol server, for agents in any language.
//
//	server, err := mcp.New(mcp.Options{Retriever: documents, Memory: store, Scope: memory.Scope{User: "ana"}})
//	// ...
//	err = server.Run(ctx, &sdk.StdioTransport{})
//
// The tools are search, over the retriever's documents, and over the memory remember, recall and forget. What they give is
// made for engines that reuse prefixes and for a sidecar that recognises what a conversation has shown: a list of JSON
// results with stable IDs and whole texts, without scores and times, so that the same document is the same bytes in every
// result. The command ragpilot-mcp serves a folder of documents and a file of memories over standard input and output.
package mcp
