// Package bounds computes how much of a trace's document tokens the best plan could save.
//
// A plan saves documents in two ways. The first turn of a session stands behind the system prompt, so that its documents
// can continue a prefix that another request has sent. Later turns stand behind their session's history: they save
// what the session retrieved before, which references replace. A [Problem] collects both from the requests of a trace
// and bounds the first from above, with an unlimited cache and counting whole documents:
//
//   - [Problem.Nearest] lets each request share all it has in common with one earlier request, and scales to large traces;
//   - [Problem.Spread] is the same for an order of the requests in which it says more, mostly the smallest of all;
//   - [Problem.SpanningTree] is the bound for reordered requests that goes through all pairs, never below Nearest;
//   - [Problem.Groups] looks at triples and quadruples, too, which is for small traces only.
//
// All of them hold for any plan, online and offline; the smallest is the one to quote.
//
//	p := bounds.New(blocks, true)
//	for _, q := range requests {
//		err := p.Add(q)
//	}
//	n, err := p.Nearest(ctx)
//	fmt.Println(p.Share(n))
//
// A Problem is not safe for use while Add runs; its bounds may be computed at the same time.
package bounds
