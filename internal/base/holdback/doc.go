// Package holdback holds a request back while another one computes the same long prefix on the same engine, so that it finds the
// prefix computed and does not compute it again (Strata, section 4.3.1: deferral on delay hit).
//
//	gate, err := holdback.New(holdback.Options{Slots: func() int { return 4 }})
//	pass, err := gate.Enter(ctx, holdback.Prompt{Chain: holdback.Chain(model, text)}) // may wait
//	if err != nil { … } // ctx has ended, or the engine has lost its cache
//	// send the request
//	pass.First()    // at the first piece of its answer
//	pass.Done(true, 0) // at the end
//
// Types to know: [Gate], one for each engine; [Prompt], whose beginning is named by a [Chain]; [Pass], the right to send.
//
// Two kinds of engines are known. One with a paged cache serves a prefix to others once it is computed: a request waits for another
// one's first piece. One with slots ([Options].Slots) has the prefix in the slot that computed it, and serves it to the next
// request on that slot, which waits for the end of the answer. There a prefix has copies, as many as requests have computed it at
// the same time, and each request uses one.
package holdback
