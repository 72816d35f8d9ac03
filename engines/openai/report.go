package openai

import "github.com/ragpilot/ragpilot/contextpilot"

// Report gives events to the sinks of [Engine.Subscribe], in order with the Served events of this engine. It is for
// packages that learn of the server's cache on another way. Scopes are left as they are.
func (e *Engine) Report(events ...contextpilot.Event) {
	if len(events) > 0 {
		e.served.send(events...)
	}
}
