// Package docs holds the project's documentation, so that the demonstration can answer questions about it from
// the binary alone. It has no code: the pages are read by people as Markdown files, and by programs from [FS].
//
//	index, err := bleve.New(docs.FS, bleve.Options{})
//
// Only the pages in this folder are embedded, not those of its subfolders.
package docs

import "embed"

// FS holds the pages, each under its file name. It is read-only by its type and safe for concurrent use.
//
//go:embed *.md
var FS embed.FS
