package sidecar

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
)

// engineID names a scope in addresses.
func engineID(s contextpilot.Scope) string {
	h := xxh3.New()
	for _, part := range []string{s.Tenant, s.Model, s.Replica} {
		_, _ = h.WriteString(part)
		_, _ = h.Write([]byte{0})
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// shownEngines is how many caches the dashboard lists.
const shownEngines = 64

// engines lists the scopes that were planned for last, by name.
func (b *board) engines() []dashboard.Engine {
	scopes := b.pilot.Scopes()
	scopes = scopes[:min(len(scopes), shownEngines)]
	out := make([]dashboard.Engine, 0, len(scopes))
	for _, s := range scopes {
		pic, ok := dashboard.PictureOf(b.pilot, s, 0)
		if !ok {
			continue
		}
		id := engineID(s)
		e := dashboard.Engine{
			ID: id, Name: b.engine + ", " + cmp.Or(s.Model, "no model"), Tenant: s.Tenant, Front: s.Replica,
			Tokens: &pic.Tokens, Live: &pic.Live, HitRatio: b.HitRatio(id),
		}
		if pic.Capacity > 0 {
			e.Capacity = &pic.Capacity
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b dashboard.Engine) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Front, b.Front))
	})
	return out
}

// Picture is what an engine's index holds. Blocks are named by their hashes: the index knows nothing else of them.
func (b *board) Picture(id string) (dashboard.Picture, bool) {
	b.expire()
	for _, s := range b.pilot.Scopes() {
		if engineID(s) != id {
			continue
		}
		pic, ok := dashboard.PictureOf(b.pilot, s, dashboard.MaxParts)
		pic.ID, pic.Samples = id, b.Samples(id)
		return pic, ok
	}
	return dashboard.Picture{}, false
}
