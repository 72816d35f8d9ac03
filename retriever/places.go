package retriever

import (
	"slices"
	"strconv"

	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever/passage"
)

// Places names the metadata keys that say which document a chunk was cut from, and where. Of each list the first key
// with a non-empty string or a number counts. The zero value stands for the keys named at the fields.
type Places struct {
	// Document names the document: "document", "doc_id", "source".
	Document []string
	// Version changes whenever the document does: "doc_version", "revision", "etag".
	Version []string
	// Chunk is the chunk's number, counted from any number on: "chunk", "chunk_index".
	Chunk []string
	// Start is the offset of the chunk's text in the document, in bytes or characters: "start_index", "start".
	Start []string
}

func (p Places) withDefaults() Places {
	or := func(keys []string, defaults ...string) []string {
		if keys == nil {
			return defaults
		}
		return slices.Clone(keys)
	}
	return Places{
		Document: or(p.Document, "document", "doc_id", "source"),
		Version:  or(p.Version, "doc_version", "revision", "etag"),
		Chunk:    or(p.Chunk, "chunk", "chunk_index"),
		Start:    or(p.Start, "start_index", "start"),
	}
}

// WithPlaces says where [WithPassages] and [WithVersionedIDs] find the places of chunks. A document that has no
// such keys is placed by its ID, if that reads as doc@version#chunk (see [passage.ParseID]).
func WithPlaces(places Places) Option {
	places = places.withDefaults()
	return option(func(s *settings) { s.places = places })
}

// WithVersionedIDs makes doc@version#chunk the ID of each chunk whose document and number are known. It is the same
// whatever store the chunk comes from, and another one when the document changes. The version is the document's, or
// [passage.ContentVersion] of the chunk where the metadata has none. So a conversation that has seen the old text gets the
// new one in full, under its own name. IDs are part of the prompt: short names and versions save tokens. Documents of one
// result that would have one ID and not one text, as from two stores that cut a document differently, are identified by
// their texts.
func WithVersionedIDs() Option {
	return option(func(s *settings) { s.versioned = true })
}

// WithPassages takes out what overlapping chunks of one document repeat, see package passage. A block is then what is
// left of a chunk, or several chunks; [Sources] still gives back what was retrieved. It is off by default: it makes
// prompts shorter and blocks less alike between requests, and which of the two weighs more depends on how the documents
// were cut (docs/adr/0016).
func WithPassages(opts passage.Options) Option {
	return option(func(s *settings) { s.passages = &opts })
}

// place returns where a document's text was, as far as it is known: Chunk and start are -1 if not.
func (s *settings) place(d schema.Document) (id passage.ID, start int) {
	id = passage.ID{
		Doc: idOf(d.Metadata, s.places.Document), Version: idOf(d.Metadata, s.places.Version), Chunk: numberOf(d.Metadata, s.places.Chunk),
	}
	if id.Doc == "" || id.Chunk < 0 {
		if own, err := passage.ParseID(idOf(d.Metadata, s.idKeys)); err == nil && own.Chunk >= 0 {
			id = own
		}
	}
	return id, numberOf(d.Metadata, s.places.Start)
}

// numberOf returns the first of the keys' values that is a number not below 0, or -1.
func numberOf(metadata map[string]any, keys []string) int {
	if n, err := strconv.Atoi(idOf(metadata, keys)); err == nil && n >= 0 {
		return n
	}
	return -1
}

// version gives blocks whose place is known their versioned IDs.
func (s *settings) version(blocks []contextpilot.Block, found []schema.Document) {
	for i, d := range found {
		id, _ := s.place(d)
		if id.Doc == "" || id.Chunk < 0 {
			continue
		}
		if id.Version == "" {
			id.Version = passage.ContentVersion(d.PageContent)
		}
		blocks[i].ID = id.String()
	}
}
