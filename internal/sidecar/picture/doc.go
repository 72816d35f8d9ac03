// Package picture shows what a pilot believes an engine's cache to hold, for people who watch: how much it is, and the
// largest of what prompts have in common.
//
//	pic, ok := picture.Of(pilot, scope, 64)
//	for _, part := range pic.Parts { // each behind its parent
//		fmt.Println(part.Parent, part.Tokens, part.Requests)
//	}
package picture
