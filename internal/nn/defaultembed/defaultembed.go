// Package defaultembed says which embedder a store of memories has if its program names none: the sentence model of this
// process. Examples of this module put another one in its place, so that they run without the model, and yet show what a
// program has to say.
package defaultembed

import (
	"sync/atomic"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/minilm"
)

var replacement atomic.Pointer[embed.Embedder]

// Embedder returns the default.
func Embedder() embed.Embedder {
	if e := replacement.Load(); e != nil {
		return *e
	}
	return minilm.Default()
}

// Replace makes e the default for the rest of the process. It is for tests.
func Replace(e embed.Embedder) { replacement.Store(&e) }
