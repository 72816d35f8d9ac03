package qdrant

import (
	"fmt"
	"regexp"
)

// TopLevel as Layout.Metadata says that metadata stands beside the other keys, as programs write it that know no other
// keys than their own.
const TopLevel = "."

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
	seen := map[string]string{}
	for _, k := range []struct{ field, key string }{
		{"ID", l.ID}, {"Text", l.Text}, {"Version", l.Version}, {"Metadata", l.Metadata}, {"Tenant", l.Tenant},
	} {
		if k.key == "" || k.field == "Metadata" && k.key == TopLevel {
			continue
		}
		if !plainKey.MatchString(k.key) {
			return fmt.Errorf("Options.Layout.%s = %q, want letters, digits, _ and -", k.field, k.key)
		}
		if other, taken := seen[k.key]; taken {
			return fmt.Errorf("Options.Layout.%s = %q is Layout.%s as well", k.field, k.key, other)
		}
		seen[k.key] = k.field
	}
	return nil
}

// tenants reports whether documents have owners.
func (l Layout) tenants() bool { return l.Tenant != "" }
