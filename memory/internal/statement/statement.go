// Package statement separates what a message states from what it asks, orders or is only polite about.
//
// The rules are lists of words and the order in which words stand: no model, no dictionary. English is known best; of other
// languages the question marks and the common greetings. What no rule knows is a statement: a text that was worth writing is
// rather stored than lost.
package statement

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longRunes is the length, in characters, above which a text is not cut up.
const longRunes = 1000

// Of returns the sentences of the text that are statements, in their order and byte for byte, with space that stood between them:
// with a new line if there was one; "" if there are none. A text in which nothing is dropped comes back as it is. A text of more than
// 1,000 characters, a list, code and markup are not cut up: they come back whole, but for one that is a single question.
func Of(text string) string {
	all := Sentences(text)
	if whole(text) {
		if len(all) == 1 && marked(all[0]) || len(all) == 0 {
			return ""
		}
		return text
	}
	var out strings.Builder
	rest, space, dropped := text, "", false
	for _, s := range all {
		at := strings.Index(rest, s)
		if !strings.Contains(space, "\n") || strings.Contains(rest[:at], "\n") { // a new line ends what has no full stop
			space = rest[:at]
		}
		rest = rest[at+len(s):]
		if !states(s) {
			dropped = true
			continue
		}
		if out.Len() > 0 {
			out.WriteString(space)
		}
		out.WriteString(s)
		space = ""
	}
	if !dropped && len(all) > 0 {
		return text
	}
	return out.String()
}

var structured = regexp.MustCompile("(?m)```" +
	`|^[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+\S` + // an item of a list
	`|[{};]\s*$|</?[A-Za-z][^<>\n]*>|=>|:=|==|\(\);?$|^[ \t]*\|.*\|`)

// whole reports whether a text is not cut up. A letter in front of a semicolon at the end may be Greek, where that is a question mark.
func whole(text string) bool {
	return utf8.RuneCountInString(text) > longRunes || structured.MatchString(text) && !isGreek(text)
}

func isGreek(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Greek, r) })
}

// states reports whether a sentence is a statement.
func states(s string) bool {
	plain := strings.ToLower(strings.ReplaceAll(s, "’", "'"))
	if idle(plain) {
		return false
	}
	words := wordsOf(plain)
	named := len(words) > 2 && greeted[words[0]] // perhaps by a name: it may stand between greeting and question
	words = withoutLead(words)
	question := marked(s)
	if begins(plain, keepsake) || begins(strings.Join(words, " "), keepsake) {
		if !question || strings.Contains(plain, " that ") {
			return true
		}
	}
	switch {
	case mixed(s, question):
		return true
	case requests(words), named && requests(words[1:]):
		return slices.ContainsFunc(entrusts, func(e string) bool { return strings.Contains(plain, e) })
	}
	return !question && !asks(words, s) && (!named || !asks(words[1:], s))
}

// withoutLead returns the words behind those that lead to a sentence.
func withoutLead(words []string) []string {
	for n := min(4, len(words)-1); n > 0; n-- {
		if leading[strings.Join(words[:n], " ")] {
			return withoutLead(words[n:])
		}
	}
	return words
}

// begins reports whether a text begins with one of the phrases and a word ends there.
func begins(text string, phrases []string) bool {
	for _, p := range phrases {
		if rest, ok := strings.CutPrefix(text, p); ok {
			r, _ := utf8.DecodeRuneInString(rest)
			if rest == "" || !unicode.IsLetter(r) && r != '\'' || !unicode.IsLetter(rune(p[len(p)-1])) {
				return true
			}
		}
	}
	return false
}

// idle reports whether a sentence in lower case is made of greetings, thanks and the like, with a name behind a greeting.
func idle(plain string) bool {
	words := wordsOf(plain)
	if len(words) == 0 {
		return strings.ContainsFunc(plain, func(r rune) bool { return r > unicode.MaxLatin1 && unicode.Is(unicode.So, r) }) // emoji
	}
	if len(words) > 12 {
		return false
	}
	if said := strings.Join(words, " ") + " "; strings.HasPrefix(said, "thanks for ") || strings.HasPrefix(said, "thank you for ") {
		return !strings.Contains(plain, ",")
	}
	found := false
	for i := 0; i < len(words); {
		n := 0
		for l := min(5, len(words)-i); l > 0 && n == 0; l-- {
			phrase := strings.Join(words[i:i+l], " ")
			switch {
			case chatter[phrase]:
				found, n = true, l
			case filler[phrase]:
				n = l
			}
		}
		if n == 0 { // a name behind a greeting ends the sentence
			return found && greeted[words[0]] && len(words)-i <= 2 && !pronoun[words[i]] && !strings.Contains(words[i], "'")
		}
		i += n
	}
	return found
}

// asks reports whether words have the form of a question without its mark.
func asks(words []string, s string) bool {
	if len(words) < 2 {
		return len(words) == 1 && wh[words[0]]
	}
	stop := strings.HasSuffix(strings.TrimRight(s, `"'”’)`), ".")
	switch first, second := words[0], words[1]; {
	case strings.Contains(s, ": "):
		return false
	case first == "what's" && second == "more", first == "what" && (second == "a" || second == "an"):
		return false
	case wh[first] && strings.Contains(first, "'"), first == "whats", first == "wheres":
		return !stop || !again(words[1:])
	case wh[first]:
		return asksFor(words, stop)
	case auxiliary[first] && pronoun[second]:
		inverted := first == "had" || first == "were" || first == "should"
		return !inverted || !strings.Contains(s, ",")
	case auxiliary[first] && determiner[second]:
		return !stop && first != "have" && first != "had" && first != "will" && first != "may" && !strings.HasSuffix(s, "!")
	case first == "does" || first == "did" || first == "is" || first == "are":
		return !stop && len(words) > 2 && !strings.HasSuffix(s, "!") && (first == "does" || capital(s, second))
	}
	return false
}

// asksFor is asks for words that begin with what, when, how and the like.
func asksFor(words []string, stop bool) bool {
	first, second := words[0], words[1]
	switch {
	case auxiliary[second]:
		return !stop || !again(words[2:])
	case second == "to":
		return true
	case first == "who":
		return !stop && !pronoun[second] && !determiner[second]
	case first == "how" && !degree[second] || first == "when" || first == "where" || first == "why":
		return false
	}
	for i := 2; i < min(len(words), 6); i++ {
		switch {
		case auxiliary[words[i]]:
			return !stop
		case pronoun[words[i]], determiner[words[i]]:
			return false
		}
	}
	return false
}

// again reports whether a verb follows that makes a statement of "what is … is …".
func again(words []string) bool {
	for _, w := range words {
		if w == "is" || w == "are" || w == "was" || w == "were" {
			return true
		}
	}
	return false
}

// capital reports whether the word stands in s with a capital letter.
func capital(s, word string) bool {
	at := strings.Index(strings.ToLower(s), " "+word)
	if at < 0 || at+1 >= len(s) {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s[at+1:])
	return unicode.IsUpper(r)
}

// requests reports whether words order something to be done.
func requests(words []string) bool {
	if len(words) == 0 {
		return false
	}
	first := words[0]
	switch {
	case begins(strings.Join(words, " "), indirect):
		return true
	case task[first]:
		return len(words) == 1 || !auxiliary[words[1]]
	case order[first]:
		return len(words) == 1 || object[words[1]] || words[1][0] >= '0' && words[1][0] <= '9'
	}
	return false
}

// stating begins a clause that says something, whatever is asked behind it.
var stating = regexp.MustCompile(`^(?i)(?:(?:hi|hello|hey|ok|okay|well|so|and|but|yes|no)[, ]+)?` +
	`(?:(?:since|because|as|given that|now that) )?` +
	`(?:i|i'm|i've|i'd|we|we're|we've|my|our|he|he's|she|she's|they|they're|it's|you|you're|you've|his|her|their|` +
	`this is|that is|there is|there are|there's|[\p{L}]+ (?:is|are|was|were|has|have)) \S`)

var hedge = regexp.MustCompile(`(?i)^(?:and |but |so )?(?:i wonder|i was wondering|i'm wondering|i am wondering|` +
	`i need to know|i want to know|i'd like|i would like|i want you|i need you|i need help|i have a question|my question|` +
	`i'm not sure|i forgot|i don't know|what|where|when|why|who|which|how|is|are|was|were)\b`)

// asTyped makes one form of what is typed in several: a hyphen between spaces is a dash.
var asTyped = strings.NewReplacer("’", "'", " - ", " – ")

// mixed reports whether a sentence states something and asks or orders something besides, or asks for no more than a nod, as in
// "I have a dog, can he eat grapes?", "My flight is on Friday, right?" and "Recommend a dinner, I'm vegetarian".
func mixed(s string, question bool) bool {
	s = asTyped.Replace(s)
	at := 0
	for {
		i := strings.IndexAny(s[at:], ",;:–—")
		if i < 0 {
			return false
		}
		at += i
		_, size := utf8.DecodeRuneInString(s[at:])
		head, tail := strings.TrimSpace(s[:at]), strings.TrimSpace(s[at+size:])
		at += size
		if tail == "" {
			return false
		}
		if stating.MatchString(head+" .") && !hedge.MatchString(head) && len(wordsOf(head)) > 1 {
			return true
		}
		if first := wordsOf(strings.ToLower(head)); requests(first) && !question && stating.MatchString(tail) && !hedge.MatchString(tail) {
			return true
		}
	}
}

// marked reports whether a sentence ends with a question mark that is its own, not that of a title or a quotation in it.
func marked(s string) bool {
	if strings.ContainsRune(s, '՞') || strings.ContainsRune(s, '¿') {
		return true
	}
	dotted := strings.Contains(s, "?") // a full stop may follow: "Really?..."
	end := strings.TrimRightFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || r == '!' || r == '！' || r == '.' && dotted || unicode.In(r, unicode.So, unicode.Variation_Selector)
	})
	if opening, _ := utf8.DecodeRuneInString(s); closes(opening) || strings.ContainsRune(`“«„‘(「`, opening) {
		end = strings.TrimRightFunc(end, closes)
	}
	r, size := utf8.DecodeLastRuneInString(end)
	if size == 0 {
		return false
	}
	return strings.ContainsRune(questionMarks, r) || r == ';' && isGreek(s)
}
