package passage

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// abbreviations are words that a full stop follows inside a sentence, in front of a name or a number. Those that end
// sentences as often ("etc.", "no.") are not among them: in front of a small letter nothing ends a sentence anyway.
var abbreviations = set(
	// English
	"dr mr mrs ms prof rev hon gen col lt maj sgt capt cmdr adm gov sen rep pres st mt ft fr jr sr inc ltd co corp bros dept",
	"vs cf al fig figs eq eqs sec ch vol vols pp ed eds approx ca ave blvd rd univ jan feb apr jun jul aug sep sept oct nov dec",
	// German
	"hr fr frl bzw ca evtl ggf inkl exkl nr str tel usw vgl sog bspw abs art bd hrsg jh geb gest jhd mio mrd dipl ing",
	// French
	"m mm mme mlle mgr av bd éd env chap n° p réf tél",
	// Spanish, Portuguese, Italian
	"sra srta d dña dra ud uds pág págs núm art cap avda exmo sig sigg sigra dott dottssa avv pag fig",
	// Dutch, Scandinavian
	"dhr mevr mw drs blz bijv nl enz jl bl osv dvs ev",
	// Polish, Czech
	"np tzw tzn ul al nr godz ok wg zob mgr inż",
	// Russian, Ukrainian
	"г гг ул пр д кв им проф акад рис табл стр см ср напр тыс млн млрд руб",
)

func set(lists ...string) map[string]struct{} {
	m := map[string]struct{}{}
	for _, list := range lists {
		for word := range strings.FieldsSeq(list) {
			m[word] = struct{}{}
		}
	}
	return m
}

// isShort reports whether a full stop behind a text belongs to its last word: an abbreviation, an initial, several of
// them ("U.S", "z.B"), or a number of one or two digits as in an ordinal or a list.
func isShort(text string) bool {
	word := lastWord(text)
	if word == "" {
		return false
	}
	if n, size := utf8.DecodeRuneInString(word); size == len(word) {
		return unicode.IsUpper(n) || unicode.IsDigit(n) || inTable(word)
	}
	if len(word) == 2 && isDigit(word[0]) && isDigit(word[1]) {
		return true
	}
	return isInitials(word) || inTable(word)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// lastWord returns the letters, digits and inner full stops at the end of a text, or "" if they are too long to matter.
func lastWord(text string) string {
	from := len(text)
	for from > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:from])
		if r != '.' && r != '°' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		from -= size
		if len(text)-from > lookBack/2 {
			return ""
		}
	}
	return text[from:]
}

// isInitials reports whether a word consists of parts of one or two letters with full stops between them.
func isInitials(word string) bool {
	letters, stops := 0, 0
	for _, r := range word {
		if r == '.' {
			stops++
			letters = 0
			continue
		}
		if letters++; letters > 2 || !unicode.IsLetter(r) {
			return false
		}
	}
	return stops > 0
}

func inTable(word string) bool {
	var buf [lookBack]byte // the look-up does not allocate
	lower := buf[:0]
	for _, r := range word {
		lower = utf8.AppendRune(lower, unicode.ToLower(r))
	}
	_, ok := abbreviations[string(lower)]
	return ok
}
