package volatile

import (
	"strings"
	"unicode/utf8"
)

// names of days and months, in lower case: English, German, French, Spanish, Italian, Portuguese, Dutch, and short English forms.
var (
	days = set("monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun " +
		"montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag lundi mardi mercredi jeudi vendredi samedi dimanche " +
		"lunes martes miércoles jueves viernes sábado domingo lunedì martedì mercoledì giovedì venerdì sabato domenica " +
		"segunda-feira terça-feira quarta-feira quinta-feira sexta-feira maandag dinsdag woensdag donderdag vrijdag zaterdag zondag " +
		"понедельник вторник среда четверг пятница суббота воскресенье poniedziałek wtorek środa czwartek piątek sobota niedziela " +
		"pazartesi salı çarşamba perşembe cuma cumartesi pazar")
	months = set("january february march april may june july august september october november december " +
		"jan feb mar apr jun jul aug sep sept oct nov dec " +
		"januar februar märz mai juni juli oktober dezember janvier février mars avril juin juillet août septembre octobre novembre décembre " +
		"enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre " +
		"gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre " +
		"janeiro fevereiro março maio junho julho setembro outubro novembro dezembro januari februari maart mei augustus " +
		"января февраля марта апреля мая июня июля августа сентября октября ноября декабря " +
		"stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia " +
		"ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık")
	zones = set("utc gmt z cet cest est edt cst cdt mst mdt pst pdt bst ist jst am pm a.m p.m uhr")
)

// lengths has, for each first byte of a name, a bit for each of its lengths in bytes.
var lengths = func() (l [256]uint32) {
	for _, names := range []map[string]bool{days, months, zones} {
		for name := range names {
			l[name[0]|0x20] |= 1 << len(name)
			l[strings.ToUpper(name)[0]|0x20] |= 1 << len(name)
		}
	}
	return l
}()

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// maxName bounds the length of a name in the tables, in bytes.
const maxName = 24

// clockWord reports whether a word is the name of a day, of a month or of a time zone. Short names and zones count with a
// capital letter only, since "sun", "may" and "est" are words.
func clockWord(w string) bool { return isDay(w) || isMonth(w) || zone(w) }

func isDay(w string) bool   { return named(days, w) }
func isMonth(w string) bool { return named(months, w) }

func named(names map[string]bool, w string) bool {
	if len(w) < 3 || len(w) > maxName {
		return false
	}
	var low [maxName]byte
	capital := false
	for i := range len(w) {
		c := w[i]
		if c >= utf8.RuneSelf {
			return names[strings.ToLower(w)]
		}
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
			capital = true
		}
		low[i] = c
	}
	return names[string(low[:len(w)])] && (capital || len(w) > 5)
}

func zone(w string) bool {
	if len(w) == 0 || len(w) > 4 {
		return false
	}
	low := strings.ToLower(w)
	return zones[low] && (strings.ToUpper(w) == w && len(w) > 1 || low == "am" || low == "pm" || low == "a.m" || low == "p.m" || w == "Uhr")
}

// dateTime returns the length of the date or time at the beginning of s; 0: there is none.
func dateTime(s string) int {
	if n := week(s); n > 0 {
		return n
	}
	if n := compact(s); n > 0 {
		return n
	}
	if n := date(s); n > 0 {
		if n < len(s) && (s[n] == 'T' || s[n] == 't' || s[n] == '_' || s[n] == '-') {
			if m := timeOfDay(s[n+1:]); m > 0 {
				return n + 1 + m
			}
		}
		return n
	}
	return timeOfDay(s)
}

// compact reads 20261127T041405Z.
func compact(s string) int {
	if len(s) < 15 || digits(s) != 8 || digits(s[9:]) != 6 || !year(s[:4]) || value(s[4:6]) > 12 {
		return 0
	}
	if s[8] != 'T' && s[8] != '_' && s[8] != '-' {
		return 0
	}
	return 15 + offset(s[15:])
}

// week reads 2026-W48 and 2026W48.
func week(s string) int {
	n := 4
	if len(s) < 7 || digits(s) != 4 || !year(s) {
		return 0
	}
	if s[n] == '-' {
		n++
	}
	if (s[n] == 'W' || s[n] == 'w') && digits(s[n+1:]) == 2 {
		return n + 3
	}
	return 0
}

// date reads 2026-11-27, 2026/11/27, 2026.11.27, 27.11.2026, 11/27/2026, 27-11-2026, 27-Nov-2026 and 2026-11.
func date(s string) int {
	a := digits(s)
	if a != 4 && a != 1 && a != 2 || a >= len(s) {
		return 0
	}
	sep := s[a]
	if sep != '-' && sep != '/' && sep != '.' {
		return 0
	}
	rest := s[a+1:]
	b := digits(rest)
	if b == 0 && a <= 2 {
		for b < len(rest) && rest[b]|0x20 >= 'a' && rest[b]|0x20 <= 'z' {
			b++
		}
		if !isMonth(rest[:b]) {
			return 0
		}
	} else if b == 0 || b > 2 || value(rest[:b]) > 31 {
		return 0
	}
	if b >= len(rest) || rest[b] != sep {
		if a == 4 && b == 2 && sep == '-' && year(s[:4]) && value(rest[:b]) <= 12 {
			return a + 1 + b
		}
		return 0
	}
	last := rest[b+1:]
	c := digits(last)
	switch {
	case a == 4 && year(s[:4]) && (c == 1 || c == 2) && value(last[:c]) <= 31,
		a <= 2 && value(s[:a]) <= 31 && (c == 4 && year(last[:4]) || c == 2 && sep != '-'):
		return a + 1 + b + 1 + c
	}
	return 0
}

func year(s string) bool { return s[0] == '1' && s[1] == '9' || s[0] == '2' && s[1] <= '1' }

// value is the number of at most nine digits.
func value(s string) int {
	n := 0
	for i := range min(len(s), 9) {
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// timeOfDay reads 4:14, 16:14:05, 16:14:05.123, 16h14, 4pm and 4:14pm, with a zone such as Z, +01:00 or +0100.
func timeOfDay(s string) int {
	n := digits(s)
	if n == 0 || n > 2 || n >= len(s) || value(s[:n]) > 24 {
		return 0
	}
	i, parts := n, 1
	for i+2 < len(s) && parts < 3 && (s[i] == ':' || s[i] == 'h' && parts == 1 || s[i] == '-' && i > 2) {
		if m := digits(s[i+1:]); m != 2 || value(s[i+1:i+3]) > 60 {
			break
		}
		i += 3
		parts++
	}
	if parts == 3 && i+1 < len(s) && (s[i] == '.' || s[i] == ',') {
		if f := digits(s[i+1:]); f > 0 {
			i += 1 + f
		}
	}
	half := i+2 <= len(s) && (strings.EqualFold(s[i:i+2], "am") || strings.EqualFold(s[i:i+2], "pm"))
	if half {
		i += 2
	}
	if parts == 1 && !half {
		return 0
	}
	return i + offset(s[i:])
}

// offset returns the length of a time zone at the beginning of s.
func offset(s string) int {
	if s == "" {
		return 0
	}
	if s[0] == 'Z' || s[0] == 'z' {
		return 1
	}
	if s[0] != '+' && s[0] != '-' {
		return 0
	}
	switch n := digits(s[1:]); {
	case n == 4:
		return 5
	case n == 2 && len(s) >= 6 && s[3] == ':' && digits(s[4:]) == 2:
		return 6
	case n == 2:
		return 3
	}
	return 0
}

// unixTime reports whether a number is a time since 1970, in seconds, milliseconds or microseconds, between 2001 and 2033. Numbers of 19
// digits are identifiers more often than nanoseconds.
func unixTime(s string) bool {
	switch len(s) {
	case 10, 13, 16:
		return s[0] == '1'
	}
	return false
}

// chineseDate returns the length of a date or time such as 2026年11月27日, at the beginning of text[from:].
func chineseDate(text string, from int) int {
	i := from
	for {
		n := digits(text[i:])
		if n == 0 || n > 4 {
			return i - from
		}
		unit := ""
		for _, u := range [...]string{"年", "月", "日", "号", "時", "时", "点", "分", "秒", "년", "월", "일", "시", "분", "초"} {
			if strings.HasPrefix(text[i+n:], u) {
				unit = u
				break
			}
		}
		if unit == "" {
			return i - from
		}
		i += n + len(unit)
		for i < len(text) && text[i] == ' ' && i+1 < len(text) && digits(text[i+1:]) > 0 {
			i++
		}
	}
}
