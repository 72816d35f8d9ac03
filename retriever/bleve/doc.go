// Package bleve is the embedded retriever: BM25 over a folder of text and Markdown files, in the process and
// in memory. It is written in Go only (it builds with CGO_ENABLED=0 and needs no server), and it is the only
// package that imports the bleve search library.
//
// [Open] reads a folder, [New] any [io/fs.FS] such as embedded documentation. Files are cut into blocks:
// Markdown at its headings, then between paragraphs, never inside a fenced code block that fits into
// Options.MaxBytes; other text between paragraphs. The first line of a Markdown block is the path of headings
// above it ("Guide > Install"), so that a block can be read, found and reused by itself. [Index.Search] returns
// blocks ready for a contextpilot.Request, [Index.Retriever] the same for langchaingo.
//
// # Identity
//
// A block's ID is "path#n": the file's relative path with slashes, and the block's place in the file, from 0.
// It is the same in every process that reads the same files, which is what replicas need to share a prefix, and
// it names the source to a reader. It has no content hash: an index never changes, and when a new index of an
// edited folder gives an old ID another text, the Pilot takes that for a new block, as it compares texts.
//
// # Caveats
//
//   - Line ends become line feeds, a byte order mark is dropped, a run of invalid UTF-8 becomes U+FFFD. Files with a
//     NUL byte or above Options.MaxFileBytes are left out and named by [Index.Skipped].
//   - Hidden folders and anything but regular files (links, too) are ignored.
//   - bleve's variant of BM25 takes the square root of a term's count and prefers blocks that match more of the
//     query's words. Scores cannot be compared between queries.
//   - Memory is about that of the texts plus the inverted index; see the benchmarks.
package bleve
