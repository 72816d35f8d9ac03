// Package genkit puts a pilot between the retrievers and models of Firebase Genkit (github.com/firebase/genkit/go).
//
//	docs := genkit.Retriever(pilot, inner)
//	found, err := docs.Retrieve(ctx, &ai.RetrieverRequest{Query: ai.DocumentFromText(question, nil)})
//	answer, err := ai.Generate(ctx, registry, ai.WithModel(model), ai.WithPrompt(question),
//		ai.WithDocs(found.Documents...), ai.WithMiddleware(genkit.Middleware(pilot)))
//
// [Retriever] lays out what inner finds: the documents come back in the order that the engine's cache has, their text as it
// belongs into the prompt (markup with a label). [Middleware] puts documents that were
// given with WithDocs in front of the question, where prompts can share them, or finds them where a prompt of your own has
// put them; makes those references that earlier messages of the same conversation show (see
// [github.com/ragpilot/ragpilot/framework.WithConversation]); and reports the outcome of the request to the pilot. Both pass
// everything else through as it is, but for what has the form of a note in a tool's result, which is fenced; [WithToolResults] puts notes
// in place of results that an agent gets again.
package genkit
