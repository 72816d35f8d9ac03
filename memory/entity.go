package memory

import (
	"slices"
	"strings"
	"unicode"
)

// Bounds on what is kept of a text.
const (
	maxEntities    = 32
	maxEntityWords = 8
)

// entitySimilarity is Mem0's: below it an entity is not meant.
const entitySimilarity = 0.5

// Names finds the names in a text by a rule: runs of words that begin with a capital letter, without punctuation between
// them, and without articles, pronouns, question words and the like at their ends. They are returned in lower case, words
// separated by spaces, each once. It is what a [Local] keeps as a memory's entities where no model has named them. Names of
// one letter, and those of scripts without capital letters, are not found; a noun that begins a sentence is.
func Names(text string) []string {
	var found, run []string
	end := func() {
		if name := nameOf(run); name != "" && !slices.Contains(found, name) && len(found) < maxEntities {
			found = append(found, name)
		}
		run = nil
	}
	for part := range strings.FieldsSeq(text) {
		runes := []rune(part)
		if unicode.IsPunct(runes[0]) {
			end()
		}
		for _, word := range wordsOf(part) {
			if first := []rune(word)[0]; unicode.IsUpper(first) {
				run = append(run, strings.ToLower(word))
			} else {
				end()
			}
		}
		if unicode.IsPunct(runes[len(runes)-1]) {
			end()
		}
	}
	end()
	return found
}

// nameOf joins a run of words, without what is no part of a name at its ends.
func nameOf(run []string) string {
	for len(run) > 0 && smallWords[run[0]] {
		run = run[1:]
	}
	for len(run) > 0 && smallWords[run[len(run)-1]] {
		run = run[:len(run)-1]
	}
	name := strings.Join(run, " ")
	if len(run) > maxEntityWords || len([]rune(name)) < 2 {
		return ""
	}
	return name
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// smallWords begin sentences and are no names.
var smallWords = func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(`a an the this that these those i he she it we you they me him her us them my your his its our
		their who whom whose what which when where why how is are was were be been has have had do does did can could will would
		should may might must in on at of for from by with to and or but if as so not no yes there here then than after before during
		while since until although though however also both each every some any all one two first`) {
		words[word] = true
	}
	return words
}()

// entities returns what is kept of a text: what a model named, or else what the rule finds.
func (l *Local) entities(named []string, text string) []string {
	if l.noEntities {
		return nil
	}
	var kept []string
	for _, name := range named {
		words := wordsOf(strings.ToLower(readable(name)))
		name = strings.Join(words, " ")
		if len(words) > 0 && len(words) <= maxEntityWords && len(kept) < maxEntities && !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	if len(kept) == 0 {
		return Names(text)
	}
	return kept
}

// meant finds out which entities a query means.
type meant struct {
	words string   // of the query, between spaces
	names []string // that the rule finds in it, between spaces
}

func newMeant(query string) *meant {
	m := &meant{words: " " + strings.Join(wordsOf(strings.ToLower(query)), " ") + " "}
	for _, name := range Names(query) {
		m.names = append(m.names, " "+name+" ")
	}
	return m
}

// similarity is 1 for an entity that stands in the query, in whatever case. Of a name in the query that contains the entity,
// or the other way round, it is the shorter one's share of the words. Mem0 compares vectors; names that are spelt differently
// are not found here.
func (m *meant) similarity(name string) float64 {
	name = " " + name + " "
	if strings.Contains(m.words, name) {
		return 1
	}
	best := 0.0
	for _, asked := range m.names {
		if strings.Contains(asked, name) || strings.Contains(name, asked) {
			a, b := float64(strings.Count(asked, " ")-1), float64(strings.Count(name, " ")-1)
			best = max(best, min(a, b)/max(a, b))
		}
	}
	if best < entitySimilarity {
		return 0
	}
	return best
}
