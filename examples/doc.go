// Package examples holds whole programs, one to a folder: retrievalqa (a langchaingo chain), multiturn (a chat on the
// core alone) and batch (many requests planned together). They need no network and no key: what answers is a
// simulator. Each prints what its expected.txt holds, which the test of this package checks.
package examples
