// Package elastic is a retriever over an Elasticsearch index: words by BM25, meaning by vectors, or both, with filters,
// tenants and passages. It satisfies store.Searcher, and langchaingo by [Index.Retriever]. Servers 8.19 and 9.x are known
// to work.
//
//	index, err := elastic.Open(elastic.Options{Addresses: []string{"http://localhost:9200"}, Index: "docs"})
//	err = index.Create(ctx, elastic.Schema{})
//	err = index.Upsert(ctx, docs)
//	hits, err := index.Search(ctx, store.Query{Text: question, K: 15, Filter: store.Eq("lang", "en")})
//
// [Index] searches and writes, [Index.Create] makes the server's index, [Index.Rebuild] fills a new one behind the alias
// while searches go on in the old one. An index that other programs made is searched as it is: see [Layout].
//
// # Clients
//
// Options.Client shares a connection with the program: any client of go-elasticsearch. A program without one does not compile
// go-elasticsearch, whose typed client takes minutes.
//
// # Identity
//
// A hit's ID is the document's own, and its version is a hash of the text, so both are the same after each re-indexing and
// in every store. Equal scores stand in the order of the IDs, which the server sorts by: a question gives the same prompt
// after a merge of segments, on another replica and after a rebuild.
//
// # Scores
//
// The server counts words by shard and counts deleted documents until it merges. So scores of an index with several
// shards, and the order of hits that nearly tie, depend on where documents happen to be. One shard, the server's default,
// is exact.
//
// # Faults
//
// Errors wrap those of package store. Searches are sent again while the server is unavailable, [Options].Attempts times in
// all. Writes are sent again only if the server said that it has not begun them. Partial results are errors: an answer from
// half of the shards would look like an answer from all.
package elastic
