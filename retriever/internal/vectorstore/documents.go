package vectorstore

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// documents returns the documents as they are stored, and their IDs: the text at store.KeyID of the metadata, or one made
// of text and metadata, so that adding the same documents again stores nothing twice.
func documents(docs []schema.Document, tenant string) ([]store.Document, []string, error) {
	out, ids := make([]store.Document, len(docs)), make([]string, len(docs))
	texts := make(map[string]string, len(docs))
	for i, d := range docs {
		id, _ := d.Metadata[store.KeyID].(string)
		if id == "" {
			var err error
			if id, err = made(d); err != nil {
				return nil, nil, fmt.Errorf("docs[%d]: %w", i, err)
			}
		}
		if text, taken := texts[id]; taken && text != d.PageContent {
			return nil, nil, fmt.Errorf("%w: docs[%d]: metadata %q = %q is that of another text, want one ID for each text, or none",
				store.ErrBadDocument, i, store.KeyID, id)
		}
		texts[id] = d.PageContent
		ids[i] = id
		out[i] = store.Document{ID: id, Text: d.PageContent, Metadata: withoutVersion(d.Metadata), Tenant: tenant}
	}
	return out, ids, nil
}

// withoutVersion returns the metadata without the version that a search has put there beside the ID. It is that of the
// text as it was found, and the program may have changed the text since. Another value at that key is the program's own.
func withoutVersion(metadata map[string]any) map[string]any {
	id, _ := metadata[store.KeyID].(string)
	version, _ := metadata[store.KeyVersion].(string)
	if id == "" || !isVersion(version) {
		return metadata
	}
	metadata = maps.Clone(metadata)
	delete(metadata, store.KeyVersion)
	return metadata
}

// isVersion reports whether s has the form of store.Version.
func isVersion(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == versionBytes && s == strings.ToLower(s)
}

// versionBytes is the length of a version of store.Version.
const versionBytes = 16

// idBytes of a hash make an ID: short, as IDs stand in prompts, and of a billion documents no two are likely to be alike.
const idBytes = 10

// made returns an ID for a document that has none.
func made(d schema.Document) (string, error) {
	metadata, err := json.Marshal(d.Metadata) // sorted by key
	if err != nil {
		return "", fmt.Errorf("%w: metadata: %w", store.ErrBadDocument, err)
	}
	if len(d.Metadata) == 0 {
		metadata = nil
	}
	text := store.ValidText(d.PageContent)
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(text), text, metadata))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:idBytes])), nil
}

// Name is that of a document: tenants may use the same IDs.
type Name struct{ Tenant, ID string }

// NameOf returns the name of a document.
func NameOf(d store.Document) Name { return Name{d.Tenant, d.ID} }

// LastOfEach checks the documents and leaves out those that a later one replaces.
func LastOfEach(docs []store.Document, tenants bool) ([]store.Document, error) {
	last := make(map[Name]int, len(docs))
	for i, d := range docs {
		if err := d.Check(tenants); err != nil {
			return nil, fmt.Errorf("docs[%d]: %w", i, err)
		}
		last[NameOf(d)] = i
	}
	out := make([]store.Document, 0, len(last))
	for i, d := range docs {
		if last[NameOf(d)] == i {
			out = append(out, d)
		}
	}
	return out, nil
}
