package memory

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Scope says whom a memory belongs to. At least one field must be set. Stored memories have exactly the fields they were
// added with; a search, a listing or a deletion reaches all memories that agree with it in the fields it sets, whatever
// the others are. So {User: "ana"} finds what was added as {User: "ana", Run: "7"}, and not the other way round.
type Scope struct {
	User  string `json:"user_id,omitempty"`
	Agent string `json:"agent_id,omitempty"`
	Run   string `json:"run_id,omitempty"`
}

// maxScope is the length in bytes of each of a scope's fields: they are keys of indexes.
const maxScope = 512

// Validate returns an error that wraps [ErrNoScope] if no field is set, and one that wraps [ErrInvalid] and names the
// field if one is too long, not UTF-8 or has a zero byte.
func (s Scope) Validate() error {
	if s == (Scope{}) {
		return ErrNoScope
	}
	for _, f := range []struct{ name, value string }{{"user", s.User}, {"agent", s.Agent}, {"run", s.Run}} {
		switch {
		case len(f.value) > maxScope:
			return fmt.Errorf("%w: %s of %d bytes, at most %d", ErrInvalid, f.name, len(f.value), maxScope)
		case !utf8.ValidString(f.value) || strings.ContainsRune(f.value, 0):
			return fmt.Errorf("%w: %s %q", ErrInvalid, f.name, f.value)
		}
	}
	return nil
}

// Covers reports whether other agrees with s in all fields that s sets.
func (s Scope) Covers(other Scope) bool {
	return (s.User == "" || s.User == other.User) &&
		(s.Agent == "" || s.Agent == other.Agent) &&
		(s.Run == "" || s.Run == other.Run)
}

type scopeKey struct{}

// WithScope returns a context that says whose memories calls with it are about; the wrappers for langchaingo read it,
// as its interfaces have no place for a scope.
func WithScope(ctx context.Context, scope Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, scope)
}

// ScopeFrom returns the scope given to [WithScope], or the zero one.
func ScopeFrom(ctx context.Context) Scope {
	scope, _ := ctx.Value(scopeKey{}).(Scope)
	return scope
}
