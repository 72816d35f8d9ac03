// Package publish is the other end of package engines/kvevents: it publishes what a cache stored and gave up as vLLM does, over
// ZeroMQ, so that whatever follows the events of a vLLM server can follow any cache.
//
//	publisher, err := publish.Listen(ctx, publish.Config{Endpoint: "tcp://127.0.0.1:5557", Replay: "tcp://127.0.0.1:5558"})
//	…
//	defer publisher.Close()
//	err = publisher.Publish(events) // of one step of the engine
//
// # On the wire
//
// The first socket is a PUB: one message for each batch, in three frames: the topic, the batch's number in 8 bytes, big-endian, and
// the payload ([Append]). Numbers begin at 0 with each Publisher; a restart shows in that they begin anew. A subscriber gets what is
// published after its subscription has come.
//
// The second, if it is configured, is a ROUTER that gives past batches again: it is sent an empty frame and a number, and answers
// with a message for each batch that is still kept, from that number on, and one whose number is ff×8 at the end.
//
// Unlike vLLM, a Publisher listens in any case, also at an endpoint that names a host. As there, nothing is encrypted and no peer is
// asked who he is, and events hold the tokens of prompts and cache salts: listen where you trust all.
//
// # What is kept
//
// The last batches are kept once, for replay and for subscribers alike: Publish only appends to them and never waits. A subscriber
// that is slower than that loses the oldest ([Stats].Dropped), sees it by the numbers, and may ask for a replay; one that takes
// nothing for Config.IOTimeout is let go. Only versions 3.0 and later of ZeroMQ's protocol are spoken (RFC 23, ZMTP 3.0), with
// the mechanism NULL.
package publish
