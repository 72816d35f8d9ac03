// Package bleve is the embedded retriever: BM25 over a folder of text, Markdown, HTML and PDF files, or over documents
// that the program gives it, in the process, in memory or in an index folder. It is written in Go only (it builds with
// CGO_ENABLED=0 and needs no server), and it is the only package that imports the bleve search library.
//
// [Open] reads a folder, [New] any [io/fs.FS] such as embedded documentation. Files are cut into blocks:
// Markdown and HTML at their headings, then between paragraphs, never inside a fenced code block that fits into
// Options.MaxBytes; other text, and the pages of a PDF, between paragraphs. The first line of a block below headings is
// their path ("Guide > Install"), so that a block can be read, found and reused by itself. [Index.Search] returns
// blocks ready for a contextpilot.Request, [Index.Retriever] the same for langchaingo, [Index.Searcher] the index as a
// store.Searcher. [Store] is the store.Searcher for documents that are not files.
//
// # Index folders
//
// With Options.IndexDir the index is kept, and the next Open indexes only the files whose content has changed, by hash,
// and removes those that are gone; [Index.Refresh] does the same while searches go on. Each file is changed whole: a crash
// leaves its old blocks or its new ones. Segments are compared with their checksums before they are used.
//
// # Identity
//
// A block's ID is "path#n": the file's relative path with slashes, and the block's place in the file, from 0.
// It is the same in every process that reads the same files, which is what replicas need to share a prefix, and
// it names the source to a reader. It has no content hash, as labels that models see are made of it and an edit elsewhere
// in a file must not change them; the version of a block's text stands beside it, in [Index.Searcher]'s hits and in the
// retriever's metadata ("path@version#n" in full). When an edited file gives an old ID another text, the Pilot takes that
// for a new block, as it compares texts.
//
// # Caveats
//
//   - Line ends become line feeds, a byte order mark is dropped, a run of invalid UTF-8 becomes U+FFFD. Files with a
//     NUL byte or above Options.MaxFileBytes, damaged PDFs and PDFs without text are left out and named by [Index.Skipped].
//   - Hidden folders and anything but regular files (links, too) are ignored.
//   - bleve's variant of BM25 takes the square root of a term's count and prefers blocks that match more of the
//     query's words. Scores cannot be compared between queries.
//   - In memory, an index takes about that of the texts plus the inverted index; see the benchmarks.
package bleve
