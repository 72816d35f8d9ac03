// Package memory remembers what agents learn in conversations, in the manner of Mem0, and puts it into prompts so that an
// engine's prefix cache is reused.
//
//	backend, err := sqlite.Open(ctx, "memories.db", sqlite.Options{})
//	store, err := memory.New(backend, memory.Config{})
//	defer store.Close()
//	_, err = store.Add(ctx, memory.Scope{User: "ana"}, messages, memory.AddOptions{})
//	hits, err := store.Search(ctx, memory.Scope{User: "ana"}, "What may she eat?", 5, memory.SearchOptions{})
//
// # Types to know
//
//   - [Store] is what an agent uses: add, search, update, delete, history. [Memory] is one short text of a [Scope].
//   - [Local] is the store that runs in this process, over a [Backend]: memory/sqlite (a file), memory/postgres (shared by many processes),
//     [NewInMemory].
//   - [Extractor] decides what is remembered: [Verbatim] (the statements of users), [Everything], [AddOnly] and [Reconcile] (a
//     model reads them).
//   - [Filter] selects by metadata and time.
//   - [Wrap] and [ChatHistory] connect a store with langchaingo.
//
// # Search
//
// Texts are compared by vectors (package embed; the default is a sentence model in this process), by words (BM25 over the stems
// of the scope's own memories, so that what others store changes nothing) and by names ([Names]). A newer statement about a
// matter comes before an older one. The order of equals is fixed, so that the same question about the same memories gives the
// same prompt. Searches run in memory, see [Indexes].
//
// # Prompts
//
// A memory becomes a block whose ID is a hash of its text and scope ([Memory.BlockID]). Nothing that changes by itself stands in
// it: no time, no score, no running number. A memory that is updated is another block; the others keep their bytes and, by the
// pilot, their order.
//
// # Deletion
//
// [Store.Delete] erases: the memory, its vector, its words, the texts in its history, and the messages kept for extractors. What
// an extractor removes because it is no longer true stays in the history.
package memory
