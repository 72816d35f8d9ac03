// Package compress chooses the keys and values of a corpus that a task needs, once for all questions (CacheNotes: G. Corallo et al.).
//
// A [Part] of the corpus is computed behind its head; a [Scorer] says how much each token matters to each layer and head; [Part.Keep]
// gathers the best of them. Heads choose different tokens but equally many, so that what was kept fits pages. Keys are kept as they were
// computed, with the position of each: [Place] turns them to where they are to stand.
package compress
