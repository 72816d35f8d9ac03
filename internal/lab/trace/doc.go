// Package trace reads and writes recorded retrieval: traces, the blocks they name, and the plans made for them.
// All three are JSON lines, and any file name may end in ".gz" or be "-" for standard input or output:
//
//	trace   {"id","session","turn","query","docs":[ids in retrieval order],"answer"?}
//	blocks  {"id","text"}
//	plan    {"id","session","turn","docs":[ids kept, in prompt order],"refs":[ids replaced by a reference],"hint"}
//
// IDs may be JSON strings or numbers; a number is read as Python's str would print it. A missing session is the
// request's ID, a missing turn is 1, and members not named here are ignored.
//
// [Reader] gives a trace one [Request] at a time, [Blocks] holds the texts, [LoadPlan] and [Writer] carry
// [Plan] lines, [Prompts] makes the text that a request sends to an engine, and [CapacityTokens] understands cache
// sizes such as "20%".
//
//	blocks, err := trace.LoadBlocks("blocks.jsonl")
//	r, err := trace.Open("trace.jsonl.gz", blocks)
//	for q, err := range r.All() {
//		err = w.WritePlan(q.Plain())
//	}
//
// Readers are strict: the first line that breaks a rule ends the reading with an error that names the file, the
// line and what is wrong with it. Types of this package are not safe for concurrent use, except that any number
// of goroutines may read a finished [Blocks].
package trace
