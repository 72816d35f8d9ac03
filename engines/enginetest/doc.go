// Package enginetest holds what every [engines.Engine] must do, as one test suite. An engine package calls it
// from its own tests:
//
//	func TestConformance(t *testing.T) {
//		enginetest.Run(t, func(t *testing.T) engines.Engine {
//			engine := mine.New(...)
//			t.Cleanup(engine.Stop)
//			return engine
//		})
//	}
//
// The engines that it is given must answer ordinary chats, each with at least two pieces of text; whether the
// answers make sense does not matter.
package enginetest
