// Package extract finds the documents that stand in a prompt's text, and writes the text again with its documents in
// another order or without some of them. It knows nothing of messages or sessions.
//
//	f, ok := extract.Find(text, extract.Options{Mode: extract.ParseMode(header)})
//	if !ok {
//		return text // nothing found, or not sure: leave it alone
//	}
//	if f.Plain() {
//		return f.Rebuild(order) // the layout of the recorded implementation
//	}
//	return f.Permute(order) // every byte stays: attributes, text between documents, labels
//
// [Found.Rebuild] writes what clients of the published Python implementation were recorded to get. It loses what that
// layout has no place for; [Found.Plain] reports whether there is anything to lose. [Found.Permute], [Found.Without] and
// [Found.Collapse] lose nothing but what they are asked to.
//
// Documents come from outside and may hold anything, also what looks like the marks that part documents. A text whose
// marks can be read in more than one way has no documents here: `<document>` inside a `<document>`, a tag that is
// never closed, labels that do not count one by one, JSON with two lists of results. What no reader can see, a
// document that holds a complete and well-formed pair of marks, is read as two documents. Marks inside JSON are not
// looked for, as putting text back would break it.
//
// All of it takes time linear in the text. A [Found] may be used by any number of goroutines.
package extract
