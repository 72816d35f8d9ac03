package clients

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// value is something that does not belong into a prompt, in one form: the n-th request has another one.
type value struct {
	cause, name string
	at          func(r *Run, n int) string
}

func formats(layouts map[string]string) (out []value) {
	for _, name := range keys(layouts) {
		out = append(out, value{"clock", name, func(r *Run, n int) string { return r.Time(n).Format(layouts[name]) }})
	}
	return out
}

var clocks = append(formats(map[string]string{
	"rfc3339": time.RFC3339, "rfc3339-nano": time.RFC3339Nano, "rfc1123": time.RFC1123, "rfc1123z": time.RFC1123Z, "rfc850": time.RFC850,
	"ansic": time.ANSIC, "unix-date": time.UnixDate, "ruby-date": time.RubyDate, "kitchen": time.Kitchen, "minutes": "15:04",
	"seconds": "15:04:05",
	"day":     "2006-01-02", "day-with-dots": "02.01.2006", "day-with-slashes": "02/01/2006", "american": "01/02/2006 03:04:05 PM",
	"short-month": "Jan 2, 2006",
	"british":     "2 January 2006",
	"spoken":      "January 2, 2006 at 3:04 PM (MST)", "log": "02/Jan/2006:15:04:05 -0700", "short-day": "Mon 2 Jan",
	"chinese": "2006年1月2日 15:04", "compact": "20060102T150405Z", "month": "January 2006 (Monday)",
}), []value{
	{"clock", "seconds-since-1970", func(r *Run, n int) string { return fmt.Sprint(r.Time(n).Unix()) }},
	{"clock", "milliseconds-since-1970", func(r *Run, n int) string { return fmt.Sprint(r.Time(n).UnixMilli()) }},
	{"clock", "go", func(r *Run, n int) string { return r.Time(n).String() }},
	{"clock", "german", func(r *Run, n int) string {
		days := []string{"Sonntag", "Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag"}
		return days[r.Time(n).Weekday()] + r.Time(n).Format(", 2. November 2006, 15:04 Uhr")
	}},
	{"clock", "french", func(r *Run, n int) string {
		days := []string{"dimanche", "lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi"}
		return days[r.Time(n).Weekday()] + r.Time(n).Format(" 2 novembre 2006")
	}},
}...)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func id(name string, draw func(r *Run) string) value {
	return value{"random-id", name, func(r *Run, _ int) string { return draw(r) }}
}

var identifiers = []value{
	id("uuid", (*Run).UUID),
	id("upper-uuid", func(r *Run) string { return strings.ToUpper(r.UUID()) }),
	id("uuid-without-dashes", func(r *Run) string { return r.Hex(32) }),
	id("ulid", (*Run).ULID),
	id("lower-ulid", func(r *Run) string { return strings.ToLower(r.ULID()) }),
	id("nanoid", (*Run).NanoID),
	id("request", func(r *Run) string { return "req_" + r.letters(24, base62) }),
	id("thread", func(r *Run) string { return "thread_" + r.letters(24, base62) }),
	id("traceparent", func(r *Run) string { return "00-" + r.Hex(32) + "-" + r.Hex(16) + "-01" }),
	id("sha256", func(r *Run) string { return r.Hex(64) }),
	id("base64", func(r *Run) string { return base64.StdEncoding.EncodeToString([]byte(r.letters(16, base62))) }),
	id("short-session", func(r *Run) string { return "sess-" + r.Hex(8) }),
	id("cuid", func(r *Run) string { return "c" + r.letters(24, base62[:10]+base62[36:]) }),
	id("object", func(r *Run) string { return "6929" + r.Hex(20) }),
	id("ksuid", func(r *Run) string { return "36" + r.letters(25, base62) }),
	id("amazon", func(r *Run) string { return "Root=1-69" + r.Hex(6) + "-" + r.Hex(24) }),
}

func count(name, format string) value {
	return value{"counter", name, func(_ *Run, n int) string { return fmt.Sprintf(format, n+3) }}
}

var counters = []value{
	count("turn", "Turn %d"), count("step", "Step %d of 12"), count("message", "This is message #%d of the conversation."),
	count("attempt", "attempt %d/9"),
	count("requests", "requests served: %d"), count("calls", "You have used %d of 20 calls of tools."),
	count("iteration", "Iteration: %d"), count("round", "round %d"),
	count("json", `{"turn": %d}`),
}

var people = [][2]string{
	{"Amelia Forsythe", "Giorgos Papadakis"},
	{"Dr. Nadia Rahman", "Prof. Lukas Steiner"},
	{"Jean-Luc Moreau", "Siobhan O'Leary"},
	{"李娜", "王小明"},
}

func person(name, format string) value {
	return value{"user-name", name, func(_ *Run, n int) string {
		return fmt.Sprintf(format, people[len(name)%len(people)][n%2])
	}}
}

var names = []value{
	person("user", "User: %s"), person("assisting", "You are assisting %s today."), person("name", "name=%s"),
	person("hello", "Greet the user with: Hello %s!"),
	person("the-users-name", "The user's name is %s."), person("customer", "Customer: %s"), person("german", "Du sprichst mit %s."),
	person("talk-to", "You talk to %s"),
	{"user-name", "address", func(_ *Run, n int) string {
		return "Signed in: " + []string{"amelia@forsythe.example", "g.papadakis@mail.example"}[n%2]
	}},
	{"user-name", "login", func(_ *Run, n int) string { return "Username: " + []string{"aforsythe", "gpapadakis42"}[n%2] }},
}

// edit is a change of a system text.
type edit struct {
	cause, name string
	change      func(text string) string
}

var edits = []edit{
	{"whitespace", "carriage-returns", func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }},
	{"whitespace", "spaces-at-ends", func(s string) string { return strings.ReplaceAll(s, "\n", "  \n") }},
	{"whitespace", "tabs", func(s string) string { return strings.ReplaceAll(s, "\n", "\n\t") }},
	{"whitespace", "a-blank-line-more", func(s string) string { return strings.Replace(s, "\n\n", "\n\n\n", 1) }},
	{"whitespace", "a-newline-first", func(s string) string { return "\n" + s }},
	{"whitespace", "a-newline-last", func(s string) string { return s + "\n" }},
	{"whitespace", "two-spaces", func(s string) string { return strings.ReplaceAll(s, ". ", ".  ") }},
	{"whitespace", "thin-space", func(s string) string { return strings.Replace(s, " and ", "\u2009and ", 1) }},
	{"whitespace", "no-break-space", func(s string) string { return strings.Replace(s, " the ", " the\u00a0", 1) }},
	{"whitespace", "one-line", func(s string) string { return strings.ReplaceAll(s, "\n", " ") }},
	{"template", "a-word", func(s string) string { return strings.Replace(s, " the ", " every ", 1) }},
	{"template", "a-sentence-less", func(s string) string {
		i := strings.Index(s, ". ")
		return s[:i+1] + s[i+2+strings.IndexAny(s[i+2:], ".\n")+1:]
	}},
	{"template", "a-sentence-more", func(s string) string { return strings.Replace(s, "\n\n", " Think before you answer.\n\n", 1) }},
	{"template", "a-sentence-first", func(s string) string { return "Think before you answer. " + s }},
	{"template", "a-sentence-last", func(s string) string { return s + " Think before you answer." }},
	{"template", "version", func(s string) string { return strings.Replace(s, "\n\n", "\n\nPolicy of the autumn, revised.\n", 1) }},
	{"template", "marks-of-a-list", func(s string) string { return strings.ReplaceAll(s, "\n", "\n* ") }},
	{"template", "loud", func(s string) string { return strings.Replace(s, ".", "!", 1) }},
	{"template", "another-language", func(s string) string { return strings.Replace(s, ". ", ". Antworte auf Deutsch. ", 1) }},
}
