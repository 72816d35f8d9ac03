package lint

import (
	"slices"
	"strings"
	"unicode"

	"github.com/ragpilot/ragpilot/prefixdiff"
)

// wordSet is a set of words in lower case.
type wordSet map[string]bool

func words(list string) wordSet {
	m := wordSet{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// Words in the names of what changes, and of what stands beside them.
var (
	clocks      = words("now today timestamp datetime clock weekday date time")
	clockExtras = words("current local system server today todays string str iso utc this day user request the")
	randoms     = words("uuid guid ulid nonce rand random")
	sessions    = words("session")
	users       = words("user username customer caller visitor guest")
	greetings   = words("hello hi dear user's customer's client talk talking speak speaking chatting help assist")
	people      = words("name email mail login handle phone address id ids")
	counters    = words("turn counter round step iteration attempt retry")
	countExtras = words("current number no nr num index idx count this the")
	messages    = words("messages history turns chat conversation")
	full        = words("first last full nick display given family your my")
	settled     = words("zone max min limit format template model tool agent file app product company system kind type role function index")
)

func (s wordSet) any(list []string) bool {
	return slices.ContainsFunc(list, func(w string) bool { return s[w] })
}

// cause says why a value changes from request to request, by the names that lead to it.
func (o origin) cause() (prefixdiff.Cause, bool) {
	if o.element || len(o.names) == 0 {
		return "", false
	}
	last, before := split(o.names[len(o.names)-1]), o.names[:len(o.names)-1]
	var owner []string // the words in front of the last name
	for _, name := range before {
		owner = append(owner, split(name)...)
	}
	if len(last) == 0 {
		return "", false
	}
	switch end := last[len(last)-1]; {
	case isClock(last) || slices.ContainsFunc(before, func(name string) bool { return isClock(split(name)) }): // also .Now.Format
		return prefixdiff.Clock, true
	case randoms.any(last) || randoms.any(owner):
		return prefixdiff.RandomID, true
	case settled.any(last) || settled.any(owner):
		return "", false
	case isUser(last, owner):
		return prefixdiff.UserName, true
	case end == "id" || end == "ids" || len(last) == 1 && sessions[end]:
		return prefixdiff.RandomID, true
	case isCounter(last, owner):
		return prefixdiff.Counter, true
	}
	return "", false
}

// isClock reports whether a name is that of the present time: Now and CurrentDate, but not ReleaseDate, DateFormat or Timeout.
func isClock(list []string) bool {
	return clocks.any(list) && !slices.ContainsFunc(list, func(w string) bool { return !clocks[w] && !clockExtras[w] })
}

// isUser reports whether a name is that of a user or of what a user is known by: User, UserName, .Customer.Email and Name, but not
// UserQuestion.
func isUser(last, owner []string) bool {
	end := last[len(last)-1]
	switch {
	case len(last) == 1 && (users[end] || len(owner) == 0 && (end == "name" || end == "email")):
		return true
	case people[end] && (users.any(last) || users.any(owner)):
		return true
	}
	return len(last) == 2 && full[last[0]] && end == "name" && len(owner) == 0
}

// isCounter reports whether a name is that of a number that grows: Turn, StepNumber, MessageCount, and the length of a history.
func isCounter(last, owner []string) bool {
	end := last[len(last)-1]
	switch {
	case end == "len" && len(last) == 1:
		return messages.any(owner)
	case end == "count":
		return true
	case counters.any(last):
		return !slices.ContainsFunc(last, func(w string) bool { return !counters[w] && !countExtras[w] })
	}
	return countExtras[end] && counters.any(owner)
}

// split cuts a name into its words, in lower case: SessionID, session_id and sessionId are session and id.
func split(name string) []string {
	var out []string
	r := []rune(name)
	from := 0
	add := func(to int) {
		if to > from {
			out = append(out, strings.ToLower(string(r[from:to])))
		}
		from = to
	}
	for i, c := range r {
		switch {
		case c == '_' || c == '-' || c == '$' || c == '.':
			add(i)
			from = i + 1
		case i > from && unicode.IsUpper(c) && (!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])):
			add(i)
		}
	}
	add(len(r))
	for i, w := range out { // uuidv4
		if strings.HasPrefix(w, "uuid") || strings.HasPrefix(w, "rand") {
			out[i] = w[:4]
		}
	}
	return out
}
