// Package store holds what the retrievers over search servers and embedded indexes have in common: documents, queries,
// hits, filters, and errors that are the same for all stores.
//
//	var s store.Searcher = index // of retriever/qdrant, retriever/elastic or retriever/bleve
//	hits, err := s.Search(ctx, store.Query{Text: question, K: 15, Filter: store.Eq("lang", "en")})
//	if errors.Is(err, store.ErrUnavailable) { … }
//
// [Blocks] makes a request's blocks of hits, [NewRetriever] a langchaingo retriever of a store. What a store must do
// beyond these types is said, and checked, by the suite in retriever/retrievertest.
package store
