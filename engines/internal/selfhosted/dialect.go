package selfhosted

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/ragpilot/ragpilot/engines/openai"
)

// Dialect is what differs between kinds of servers: names of members, paths, flags and metrics.
type Dialect struct {
	name          string // of labels and errors
	ids           openai.IDPlace
	salts         []string // members of a body that separate caches
	promptTokens  string   // the member that asks for the prompt's tokens
	streamsTokens bool     // such an answer can be streamed
	reset         string   // the path that empties the cache
	busyStatus    int      // its status while the cache is in use; 0: the body reports it
	cachedFlag    string   // the server's flag that switches cached_tokens on
	members       []member

	// describe enters what the server reports of itself into f.
	describe func(ctx context.Context, e *Engine, f *Features)
	sources  func(ctx context.Context, e *Engine) ([]EventSource, error)
	metrics  func(m Samples) Metrics // all but Started
}

// member is a member of a chat's body that only some releases take.
type member struct {
	name    string
	since   since // the first release known to have it, zero if only the schema shows it
	feature func(f *Features) *Support
}

// salt returns the salt that a body is sent with. ok is false if it cannot be known.
func (d *Dialect) salt(extra map[string]json.RawMessage) (salt string, ok bool) {
	for _, name := range d.salts {
		text, isText := Text(extra[name])
		if !isText || salt != "" && text != "" {
			return "", false
		}
		salt = cmp.Or(salt, text)
	}
	return salt, true
}

func session(f *Features) *Support      { return &f.Session }
func salt(f *Features) *Support         { return &f.Salt }
func extraKey(f *Features) *Support     { return &f.ExtraKey }
func priority(f *Features) *Support     { return &f.Priority }
func promptTokens(f *Features) *Support { return &f.PromptTokens }
