// Package tokens cuts text into tokens the way the project's evaluation does, so that token counts made here,
// in the simulator and in published tables mean the same thing.
//
// A token is a run of at most six letters and digits, or one other visible character: the matches of the Python
// regular expression
//
//	[^\W_]{1,6}|[^\w\s]|_
//
// on a Python str. Letters and digits are the Unicode categories L* and N*; white space is what str.isspace
// accepts, which includes U+001C to U+001F. English prose has about 1.3 tokens a word, near a BPE vocabulary.
//
//	n := tokens.Count("Hello, worldwide_web 2") // 7: Hello , worldw ide _ web 2
//
// [Count] only counts, [Pieces] walks the tokens. The categories are those of the
// Unicode version in the Go toolchain; another version differs only for characters that one of them lacks.
package tokens
