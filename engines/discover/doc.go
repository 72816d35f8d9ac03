// Package discover keeps the replicas of an [engines.Router] up to date: it asks a [Source] which there are, and each of them
// whether it is up.
//
//	watcher, err := discover.New(discover.Options{
//		Router: router,
//		Source: discover.DNS{Host: "vllm.internal", Port: 8000},
//		Open:   func(name, url string) (engines.Engine, error) { return openai.New(openai.Config{BaseURL: url}) },
//	})
//	go watcher.Run(ctx)
//
// Sources are [Static], [File], [DNS], [SRV], and the package kubernetes below this one. A replica that a source names no more,
// or that does not answer its health check, takes no requests from the next interval on, and what was known of its cache is
// dropped; see Options.Probe for several that are late together.
package discover
