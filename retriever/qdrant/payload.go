package qdrant

import (
	"fmt"
	"regexp"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/protobuf/proto"

	"github.com/ragpilot/ragpilot/retriever/internal/remote"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// payload returns the document as it is stored.
func (l Layout) payload(d store.Document) (map[string]*api.Value, error) {
	metadata, err := store.ValidMetadata(d.Metadata)
	if err != nil {
		return nil, fmt.Errorf("document %q: %w", d.ID, err)
	}
	values, err := api.TryValueMap(metadata)
	if err != nil {
		return nil, fmt.Errorf("%w: document %q: %w", store.ErrBadDocument, d.ID, err)
	}
	own := map[string]*api.Value{
		l.ID:      api.NewValueString(d.ID),
		l.Text:    api.NewValueString(store.ValidText(d.Text)),
		l.Version: api.NewValueString(store.Version(d.Text)),
	}
	if l.tenants() {
		own[l.Tenant] = api.NewValueString(d.Tenant)
	}
	if l.Metadata != TopLevel {
		if len(values) > 0 {
			own[l.Metadata] = api.NewValueFromFields(values)
		}
		return own, nil
	}
	for key, value := range values {
		if stored, taken := own[key]; taken && !proto.Equal(stored, value) { // the ID and version of a hit may be there
			return nil, fmt.Errorf("%w: document %q: metadata %q is a key of Options.Layout", store.ErrBadDocument, d.ID, key)
		}
		own[key] = value
	}
	return own, nil
}

// hit returns the document in a payload.
func (l Layout) hit(id *api.PointId, payload map[string]*api.Value) (store.Hit, error) {
	h := store.Hit{ID: l.id(id, payload), Version: payload[l.Version].GetStringValue()}
	if _, isText := payload[l.Text].GetKind().(*api.Value_StringValue); !isText {
		return h, fmt.Errorf("%w: point %s has no text at %q of its payload (Options.Layout.Text)",
			store.ErrBadDocument, pointName(id), l.Text)
	}
	h.Text = payload[l.Text].GetStringValue()
	if h.Version == "" {
		h.Version = store.Version(h.Text)
	}
	if l.Metadata != TopLevel {
		h.Metadata = fields(payload[l.Metadata].GetStructValue().GetFields())
		return h, nil
	}
	h.Metadata = fields(payload)
	for _, key := range []string{l.ID, l.Text, l.Version, l.Tenant} {
		delete(h.Metadata, key)
	}
	return h, nil
}

// id returns the document's ID, or the point's if the payload has none.
func (l Layout) id(id *api.PointId, payload map[string]*api.Value) string {
	if own := payload[l.ID].GetStringValue(); own != "" {
		return own
	}
	return pointName(id)
}

func fields(in map[string]*api.Value) map[string]any {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]any, len(in))
	for key, value := range in {
		out[key] = plain(value)
	}
	return out
}

// plain returns a value as Go has it.
func plain(v *api.Value) any {
	switch k := v.GetKind().(type) {
	case *api.Value_BoolValue:
		return k.BoolValue
	case *api.Value_IntegerValue:
		return k.IntegerValue
	case *api.Value_DoubleValue:
		return k.DoubleValue
	case *api.Value_StringValue:
		return k.StringValue
	case *api.Value_ListValue:
		out := make([]any, len(k.ListValue.GetValues()))
		for i, value := range k.ListValue.GetValues() {
			out[i] = plain(value)
		}
		return out
	case *api.Value_StructValue:
		if out := fields(k.StructValue.GetFields()); out != nil {
			return out
		}
		return map[string]any{}
	}
	return nil
}

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

// complete fills in what is empty, and checks the names.
func (l *Layout) complete() error {
	fields := remote.Layout(&l.ID, &l.Text, &l.Version, &l.Metadata, l.Tenant)
	return remote.CheckLayout(fields, map[string]string{}, plainKey.MatchString)
}

// tenants reports whether documents have owners.
func (l Layout) tenants() bool { return l.Tenant != "" }
