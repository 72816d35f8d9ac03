// Package demo shows the project's main job on real documents: a chat of several users, run twice on the same
// retrieved blocks, once as a program without a pilot would send it and once with one.
//
// [Run] takes a [Config] and returns a [Result], which [WriteTable] prints and [WritePage] draws. A [Script] says
// who asks what and in which order: [DefaultScript] asks about the project's own documentation, [ReadScript] reads
// a file, [Derive] makes one from the headings of a folder.
//
//	script ──> search, once per question ──> blocks ─┬─> retrieval order, in full ──> engine 1
//	                                                 └─> Pilot.Plan ──────────────> engine 2 ──> Pilot.Observe
//
// Both sides send the system message and the whole history with every turn, in the same markup, to engines with
// prefix caching. That no block is lost is checked for every request against the messages that are really sent; a
// run in which one is missing is an error, as is one in which an engine fails.
package demo
