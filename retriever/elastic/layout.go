package elastic

import (
	"cmp"
	"regexp"

	"github.com/ragpilot/ragpilot/retriever/internal/remote"
)

// TopLevel as Layout.Metadata says that metadata stands beside the other fields, as programs write it that know no other
// fields than their own.
const TopLevel = remote.TopLevel

// Fields beside those of a [Layout]: what filters ask for, in a form that any metadata fits into, see facets.
const (
	facetsField  = "facets"
	numbersField = "numbers"
)

// Layout names the fields of a document. Letters, digits, "_" and "-" make a name; dots lead into objects where Mapped is
// set.
type Layout struct {
	// ID, Text and Version hold strings. Empty: "id", "text" and "version". A document without an ID is known by the
	// server's _id, one without a version by the version of its text. One without a text cannot be a block: it is an error.
	ID, Text, Version string
	// Metadata holds the metadata, as an object. Empty: "metadata"; [TopLevel]: all other fields are metadata.
	Metadata string
	// Tenant holds the tenant, as a keyword. Empty: the index has no tenants.
	Tenant string
	// Vector holds the vector. Empty: "vector".
	Vector string
	// Mapped says that the index was made by others: filters ask the metadata's own fields, as they are mapped there
	// (strings as keyword). Otherwise they ask two fields that [Index.Upsert] writes and [Index.Create] maps, so that
	// no value of one document can be in the way of another's.
	Mapped bool
}

var (
	plainName  = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	dottedName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
)

// complete fills in what is empty, and checks the names.
func (l *Layout) complete() error {
	l.Vector = cmp.Or(l.Vector, "vector")
	fields := append(remote.Layout(&l.ID, &l.Text, &l.Version, &l.Metadata, l.Tenant), remote.Field{Field: "Vector", Name: l.Vector})
	taken := map[string]string{facetsField: "what filters ask for", numbersField: "what filters ask for"}
	return remote.CheckLayout(fields, taken, func(name string) bool {
		return plainName.MatchString(name) || l.Mapped && dottedName.MatchString(name)
	})
}

// tenants reports whether documents have owners.
func (l Layout) tenants() bool { return l.Tenant != "" }
