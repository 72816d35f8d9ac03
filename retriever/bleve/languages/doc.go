// Package languages makes the analyzers of bleve's languages known to retriever/bleve: stop words, stemming and, for
// Chinese, Japanese and Korean, pairs of characters. Import it for that alone:
//
//	import _ "github.com/ragpilot/ragpilot/retriever/bleve/languages"
//
// The analyzers are named ar, ckb, cjk, da, de, en, es, fa, fi, fr, hi, hr, hu, it, nl, no, pt, ro, ru, sv and
// tr.
package languages
