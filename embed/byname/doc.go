// Package byname opens the embedder that a setting names, as --memory-embedder of the commands does: the sentence model in
// this process, an OpenAI-compatible server, or none (memories are then searched by words). A program that lets its own users
// choose an embedder by a string uses it:
//
//	source, err := byname.Open(byname.Setting{Value: flagValue}, byname.Options{})
package byname
