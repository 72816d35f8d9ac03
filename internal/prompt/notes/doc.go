// Package notes owns the notes that stand in forwarded texts in place of what was said before: it writes them, finds
// what has their form in texts of others, and fences it. The grammar is in docs/markup.md.
//
//	text = notes.Fence(text) // a tool result, a document
//	note := notes.Repeat(first, last, "read_file")
//
// A [Form] does the same for notes that are worded elsewhere. What has the form of a note follows from the letters alone:
// letter case and all that stands between letters do not count. All of it takes time linear in the text.
package notes
