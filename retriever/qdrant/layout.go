package qdrant

import (
	"regexp"

	"github.com/ragpilot/ragpilot/retriever/internal/remote"
)

// TopLevel as Layout.Metadata says that metadata stands beside the other keys, as programs write it that know no other
// keys than their own.
const TopLevel = remote.TopLevel

// Layout names the payload keys of a document. Letters, digits, "_" and "-" make a key.
type Layout struct {
	// ID, Text and Version hold strings. Empty: "id", "text" and "version". A point without an ID is known by its
	// point ID, one without a version by the version of its text. A point without a text cannot be a block: it is
	// an error.
	ID, Text, Version string
	// Metadata holds the metadata, as a map. Empty: "metadata"; [TopLevel]: all other keys are metadata.
	Metadata string
	// Tenant holds the tenant, a string. Empty: the collection has no tenants.
	Tenant string
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (l Layout) check() error {
	return remote.CheckLayout([]remote.Field{
		{Field: "ID", Name: l.ID}, {Field: "Text", Name: l.Text}, {Field: "Version", Name: l.Version}, {Field: "Metadata", Name: l.Metadata},
		{Field: "Tenant", Name: l.Tenant},
	}, map[string]string{}, plainKey.MatchString)
}

// tenants reports whether documents have owners.
func (l Layout) tenants() bool { return l.Tenant != "" }
