// Package recall measures how much of what is relevant a store finds: recall at k, the share of a question's relevant
// documents that are among the first k hits, as the mean over the questions.
//
// Traces hold what was retrieved and not what is relevant. byTitle makes relevance of texts that begin with a title: a
// block is relevant to the questions that name its title. The title is taken out of the text, or finding it would be too
// easy. What is measured that way compares stores and analyzers with each other; it says little about answers.
//
// All of it is in its tests: no program needs it.
package recall
