// Package retrievertest holds what every store of package store must do, as one test suite. A store's package calls it
// from its own tests:
//
//	func TestConformance(t *testing.T) {
//		retrievertest.Run(t, retrievertest.Subject{
//			New: func(t testing.TB) retrievertest.Store {
//				index := open(t, server(t), mine.Options{})
//				t.Cleanup(func() { drop(t, index) })
//				return index
//			},
//			Unavailable: func(t testing.TB) store.Searcher { return open(t, nobody, mine.Options{}) },
//		})
//	}
//
// A store that is a vectorstores.VectorStore of langchaingo is checked as one, too.
//
// Stores that find by meaning need vectors: [Embedder] makes them of words and needs no model. The suite asks only for
// words that stand in the documents, so that stores that find words and stores that find meaning give the same answers.
package retrievertest
