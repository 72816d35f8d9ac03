package lexical

import (
	"strings"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

// Stems returns the terms of a text that say what it is about, in their order and with repeats: without English stop words, and
// each brought to its stem by the Snowball stemmer, as bleve's English analyzer does. Terms of other languages are
// stemmed by the same rules, which leave most of them as they are.
func Stems(text string) []string { return StemsOf(Terms(text)) }

// StemsOf is [Stems] for a text that was cut into terms. It leaves them as they are.
func StemsOf(terms []string) []string {
	stems := make([]string, 0, len(terms))
	env := snowballstem.NewEnv("")
	for _, term := range terms {
		if !stopWords[term] {
			env.SetCurrent(term)
			english.Stem(env)
			stems = append(stems, env.Current())
		}
	}
	return stems
}

// stopWords are bleve's, cut as Terms cuts texts: "don't" is "don" and "t".
var stopWords = func() map[string]bool {
	list := analysis.NewTokenMap()
	if err := list.LoadBytes(en.EnglishStopWords); err != nil {
		panic("lexical: stop words: " + err.Error()) // they are a constant
	}
	words := make(map[string]bool, len(list))
	for word := range list {
		for _, part := range Terms(strings.ReplaceAll(word, "|", "")) {
			words[part] = true
		}
	}
	return words
}()
