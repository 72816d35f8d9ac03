// Package membench measures agent memory: whether the facts that users stated are found by paraphrased questions, what becomes of
// facts that were replaced or deleted, what use does to that, and what the prompts cost an engine with a prefix cache.
//
//	data, err := membench.Generate(membench.Options{})
//	…
//	recall, err := membench.Recall(ctx, data, membench.Target{…}) // facts alone, after updates and deletions, after the chat
//	arms, err := membench.Prompts(ctx, data, membench.PromptOptions{…}) // no memory, whole history, top-k, ours
//
// [Generate] makes users with facts, statements about others, updates, deletions and turns of chat; the same options give the
// same bytes everywhere. [ReadRows] reads conversations of the user's own. [Load] fills a store with many memories of one
// user and measures it. [Report] prints and draws what was found.
//
// The patterns of facts and questions (texts.json) were written before anything was measured with them.
package membench
