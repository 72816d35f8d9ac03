// Package memorytest holds what every [memory.Store] and every [memory.Backend] must do, as test suites. A package with a
// backend calls [RunBackend] from its own tests, one with a store of another kind, such as a client of a server, [Run]:
//
//	func TestConformance(t *testing.T) {
//		memorytest.RunBackend(t, func(t *testing.T) memory.Backend {
//			backend, err := mine.Open(t.Context(), t.TempDir())
//			if err != nil {
//				t.Fatal(err)
//			}
//			return backend // the suite closes it
//		})
//	}
//
// [Run] makes no use of a model: it gives stores extractors of its own that do what a check needs.
package memorytest
