// Package passage makes of the retrieved chunks of a document what is worth sending: no sentence twice, none lost.
//
// Stores cut documents into chunks that overlap, so that no sentence is torn in all of them. Neighbours are often
// retrieved together, and then the overlap stands in the prompt twice. [Make] looks for the chunks of one document that
// overlap, by their text and whatever is known of their place, and takes the repeats out:
//
//	passages := passage.Make([]passage.Chunk{
//		{Doc: "manual@3", Index: 4, Start: -1, Text: "The pump moves water. It starts by itself. Wa"},
//		{Doc: "manual@3", Index: 5, Start: -1, Text: "starts by itself. Wait a minute before you open the valve."},
//	}, passage.Options{})
//	// The pump moves water. It starts by itself.
//	// Wait a minute before you open the valve.
//
// # Forms
//
// A prefix cache reuses a block only if its text is the same in every request, whatever neighbours are retrieved with
// it. [Cut], the default, keeps one block for each chunk: it holds the sentences that begin in the chunk's own stride,
// up to where the next chunk begins. What another chunk would have brought is in it only if that chunk is missing. So the
// front of a block is nearly always the same, and the text never depends on the order of the chunks or on what was asked
// before. [Join] makes one block of a row of chunks: fewer tokens, and another text for every row. docs/adr/0016 has
// what each of them reuses.
//
// # Identity
//
// An [ID] names a chunk of a version of a document: doc@version#chunk. A new version has new IDs, so that a
// conversation that has seen the old text is shown the new one. [ContentVersion] stands in where there are no
// versions.
//
// Nothing here keeps state: the same chunks give the same passages, in every process.
package passage
