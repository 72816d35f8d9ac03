// Package tenant carries the tenant of an HTTP request through its context. Authentication sets
// it; everything that keeps state keeps it apart by tenant. The zero tenant "" is the only one of most servers.
package tenant

import (
	"context"
	"strings"
)

type key struct{}

// Want says what [Valid] asks for.
const Want = "want 1 to 128 printable ASCII characters without spaces"

// Valid reports whether a name may be a tenant's: names stand in logs, and keep state apart.
func Valid(name string) bool {
	return name != "" && len(name) <= 128 && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}

// With returns a context whose requests belong to a tenant.
func With(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, key{}, name)
}

// From returns the tenant, "" if none was set.
func From(ctx context.Context) string {
	name, _ := ctx.Value(key{}).(string)
	return name
}
