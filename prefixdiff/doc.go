// Package prefixdiff says why a request to a language model missed the engine's prefix cache. It finds the earlier request whose prompt
// has the longest common prefix, the first difference, its place, its cause and the tokens that were lost.
//
//	index, err := prefixdiff.New(prefixdiff.Config{})
//	...
//	prompt, err := prefixdiff.Parse(body) // of any of five APIs
//	...
//	if f, ok := index.Add(prompt); ok {
//		log.Printf("%s at %s: %d tokens lost", f.Cause, f.Path, f.LostTokens)
//	}
//
// An index keeps hashes and no texts, unless it is asked to. The hashes are made with a key that is new in each process.
// Tokens are estimated, as in package contextpilot.
package prefixdiff
