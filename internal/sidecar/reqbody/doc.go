// Package reqbody reads the bodies of requests into memory. A body takes memory as it arrives, whatever length it claims,
// and all bodies together no more than a [Budget].
//
//	server:  r.Body = body{r.Body, budget.Open()}   // with a method Hold, see [Holder]; Release when the answer has ended
//	handler: raw, err := reqbody.ReadAll(r)
//	         reqbody.Release(r)                      // as soon as raw is not needed any more
//
// A body that passes through a small buffer is not read here, and does not count.
package reqbody
