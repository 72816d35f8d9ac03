package store

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Check returns an error that wraps [ErrBadQuery] and names the field if a query makes no sense for any store, or not
// for this one: tenants says whether it has them.
func (q Query) Check(tenants bool) error {
	switch {
	case strings.TrimSpace(q.Text) == "":
		return fmt.Errorf("%w: Query.Text = %q, want a question", ErrBadQuery, q.Text)
	case q.K < 1:
		return fmt.Errorf("%w: Query.K = %d, want at least 1", ErrBadQuery, q.K)
	}
	if err := CheckTenant(q.Tenant, tenants); err != nil {
		return err
	}
	if err := q.Filter.Check(); err != nil {
		return fmt.Errorf("Query.Filter: %w", err)
	}
	return nil
}

// Check returns an error that wraps [ErrBadDocument] and names the field if the document cannot be stored.
func (d Document) Check(tenants bool) error {
	if d.ID == "" || !utf8.ValidString(d.ID) {
		return fmt.Errorf("%w: Document.ID = %q, want UTF-8 that is not empty", ErrBadDocument, d.ID)
	}
	if err := checkTenant("Document", d.Tenant, tenants); err != nil {
		return fmt.Errorf("%w: document %q: %w", ErrBadDocument, d.ID, err)
	}
	return nil
}

// CheckTenant returns an error that wraps [ErrBadQuery] if documents of this tenant cannot be named, to delete them for
// example: tenants says whether the store has tenants.
func CheckTenant(tenant string, tenants bool) error {
	if err := checkTenant("Query", tenant, tenants); err != nil {
		return fmt.Errorf("%w: %w", ErrBadQuery, err)
	}
	return nil
}

func checkTenant(of, tenant string, tenants bool) error {
	switch {
	case tenants && tenant == "":
		return fmt.Errorf("%s.Tenant is empty, and the store has tenants", of)
	case !tenants && tenant != "":
		return fmt.Errorf("%s.Tenant = %q, and the store has no tenants", of, tenant)
	case !utf8.ValidString(tenant):
		return fmt.Errorf("%s.Tenant = %q, want valid UTF-8", of, tenant)
	}
	return nil
}
