// Package kvevents follows the KV-cache events of vLLM and SGLang servers: what these store in their prefix caches and
// what they evict, as they publish it over ZeroMQ.
//
// A [Subscriber] keeps one connection to each engine, or lets engines connect, and gives each publisher's batches to a
// [Sink], in the engine's order and without repetition. What is lost on the way is asked for again; what cannot be had
// again is known to be missing: [Status] has counters, and a [Window] for each time in which the picture was not
// complete. Package engines/kvevents/residency has a sink that knows which requests have lost their blocks. A
// [Decoder] reads single messages.
//
//	sub, err := kvevents.New(kvevents.Config{
//		Sources: []kvevents.Source{{Name: "r0", Endpoint: "tcp://10.0.0.5:5557", Replay: "tcp://10.0.0.5:5558"}},
//		Sink:    func(kvevents.Publisher) kvevents.Sink { return index },
//	})
//	…
//	err = sub.Run(ctx)
//
// # Turning events on
//
// vLLM, with prefix caching on as it is by default:
//
//	--kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557",
//	  "replay_endpoint":"tcp://*:5558","topic":"kv@<host:port>@<model>"}'
//
// SGLang, with pages of 16 tokens or more (at 1, older releases send an event for each token):
//
//	--page-size 16 --kv-events-config '{"publisher":"zmq","endpoint":"tcp://*:5557",
//	  "replay_endpoint":"tcp://*:5558","topic":"kv@<host:port>@<model>"}'
//
// Name the publisher: in some releases the default is none. On one host, ipc:///path works for the endpoint, and
// keeps the events from the network.
//
// An engine listens on an endpoint with * (or ipc://) and connects to one that names a host. It says nothing about
// which it does, and a Subscriber that dials an engine which connects waits for ever; [Status.Hint] reports it if there
// is a replay endpoint. For engines that connect set [Source.Listen], and give each a topic of its own: numbers of
// messages are counted by each engine for itself, and the topic distinguishes engines after a reconnection.
//
// The replay endpoint is worth having. Without it a lost message leaves the picture incomplete until the engine's cache
// is cleared, and every reconnection clears the picture unless [Config.StartTime] shows that the engine is still the
// same process. With it, a Subscriber that starts late learns everything, as long as the engine's buffer
// (buffer_steps, 10,000 batches) reaches back to its start.
//
// With data parallelism every rank publishes on a port of its own: [Ranks].
//
// Do not ask vLLM for kv_cache_report_mode "full": hits are then reported as if they were stored, and copies can no
// longer be counted.
//
// # What to know
//
// Events are secret: they hold the tokens of prompts, and cache salts. ZeroMQ is used without encryption or
// authentication, as engines offer no other; keep it on a network that you trust.
//
// Events lag: they leave the engine after the step that they report, most often before the answer and up to some
// 100 ms after it. After an engine's cache was reset by hand nothing is published until its next step: clear your sink
// yourself then.
//
// Decoded: vLLM 0.9 to 0.33 and SGLang 0.4.9 to 0.5.23, by their own encodings, event by event. Checked against a recorded
// vLLM 0.32.0 server, SGLang 0.5.23's cache, and libzmq's sockets.
package kvevents
