// Package wiretest plays recorded exchanges of the reference server against ours and compares the answers.
//
// [Examples] returns the recordings, a [Runner] starts a server for each [Example], plays its [Step]s and compares what comes
// back, and what reached the engine behind it. Everything is compared, down to names and types of members. What may
// differ is said by a [Rule], with a reason: a value that is free, a list without order, or a point where we differ on
// purpose, which must then be what the rule says. A rule that is never needed is an error too, so a list of rules is the
// list of differences.
//
//	runner := wiretest.Runner{Start: func(t testing.TB, ex wiretest.Example, engine string) string {
//		return wiretest.Serve(t, proxy.New(proxy.Options{Upstream: engine}))
//	}, Rules: rules}
//	for _, ex := range wiretest.Examples(t) {
//		t.Run(ex.Name, func(t *testing.T) { runner.Run(t, ex) })
//	}
//	runner.Unused(t)
package wiretest
