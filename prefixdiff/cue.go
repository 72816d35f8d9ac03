package prefixdiff

import (
	"slices"
	"strings"
	"unicode"
)

// cue is what the words in front of a difference say about it.
type cue uint8

const (
	noCue cue = iota
	who       // a user
	when      // a time
	key       // an identifier
	count     // a number that grows
)

// The words that are cues, in lower case.
var (
	whoWords = wordSet("user username user_name name named called customer client member patient student employee caller " +
		"guest account owner hello hi hey dear welcome mr mrs ms dr login handle firstname first_name lastname " +
		"full_name user_id userid customer_id email mail recipient sender benutzer kunde hallo herr frau " +
		"utilisateur bonjour nom monsieur madame usuario hola nombre señor señora utente cliente " +
		"пользователь пользователя клиент клиента имя имени nom nome vorname nachname prénom " +
		"klant gebruiker naam mevrouw meneer klient klientka użytkownik pan pani panem panią müşteri kullanıcı adı sayın " +
		"usuário utilizador senhor " +
		"senhora kund användare namn bruger kunde المستخدم العميل اسم")
	whenWords = wordSet("time date today now clock timestamp datetime day datum uhrzeit heute jetzt aujourd'hui fecha hoy ora " +
		"oggi uptime elapsed ago generated updated")
	keyWords = wordSet("id uuid guid request_id requestid request-id trace trace_id session session_id sessionid nonce token " +
		"hash commit sha correlation correlation_id key run_id build")
	countWords = wordSet("turn step request requests attempt iteration message messages count counter round visit visits number " +
		"no nr total remaining left used so calls call try retry page version revision budget tokens queue " +
		"position seq sequence index score")
)

func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// How many words in front of a difference are looked at.
const (
	cueReach  = 4
	nameReach = 6 // "the customer of this talk is"
)

// cue returns what the words in front of the difference say, the nearest first, and then those behind it.
func (g *gap) cue() cue {
	at := int(g.at[min(g.from, len(g.at)-1)])
	before := g.text[max(0, at-80):at]
	if i := strings.LastIndexByte(strings.TrimRight(before, " \t"), '\n'); i >= 0 {
		before = before[i+1:]
	}
	before = strings.ToLower(before)
	near := strings.FieldsFunc(before, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '_' && r != '-' && r != '\''
	})
	near = slices.DeleteFunc(near, func(w string) bool { return w[0] >= '0' && w[0] <= '9' })
	for i := len(near) - 1; i >= max(0, len(near)-nameReach); i-- {
		if c := cueOf(near[i]); c != noCue && (c == who || i >= len(near)-cueReach) {
			g.near = i == len(near)-1
			return c
		}
	}
	for _, w := range whoWide {
		if i := strings.LastIndex(before, w); i >= 0 && len(before)-i-len(w) <= 6 {
			g.near = true
			return who
		}
	}
	if behind := strings.ToLower(g.text[at:min(len(g.text), at+32)]); strings.Contains(behind, " ago") {
		return when
	}
	return noCue
}

// whoWide are words for users that no space stands behind.
var whoWide = []string{
	"/home/", "/users/", `\users\`, "用户", "姓名", "客户", "顾客", "先生", "女士", "名前", "氏名", "お客様", "ユーザー", "顧客", "사용자", "이름", "고객",
}

// titles stand in front of a person's name.
var titles = wordSet("mr mrs ms dr prof herr frau m mme mlle monsieur madame sr sra señor señora signor signora")

// titled reports whether the words that differ begin with a title.
func (g *gap) titled() bool {
	at := int(g.at[min(g.from, len(g.at)-1)])
	first, _, _ := strings.Cut(g.text[at:min(len(g.text), at+16)], " ")
	return titles[strings.ToLower(strings.Trim(first, ".:"))]
}

func cueOf(w string) cue {
	switch {
	case keyWords[w] || strings.HasSuffix(w, "_id") || strings.HasSuffix(w, "-id"):
		if whoWords[w] {
			return who
		}
		return key
	case whoWords[w]:
		return who
	case whenWords[w]:
		return when
	case countWords[w]:
		return count
	}
	for piece := range strings.SplitSeq(w, "_") { // employee_name
		if whoWords[piece] {
			return who
		}
	}
	return noCue
}

// personal are the words that stand in front of a person's name.
var personal = wordSet("with to for assist assisting help helping am i'm serve serving address " +
	"addressing greet greeting behalf mit für avec pour con para com met")

// whoseName reports whether the text around the difference is about a person: words such as "with" in front of it, or 's
// behind it.
func (g *gap) whoseName() bool {
	at := int(g.at[min(g.from, len(g.at)-1)])
	before := strings.Fields(strings.ToLower(g.text[max(0, at-40):at]))
	behind := g.text[at:min(len(g.text), at+48)]
	if i := strings.IndexAny(behind, "'’"); i > 0 && !strings.ContainsAny(behind[:i], ".\n") {
		if strings.HasPrefix(strings.TrimLeft(behind[i:], "'’"), "s ") {
			return true
		}
	}
	if len(before) == 0 || strings.ContainsAny(before[len(before)-1][len(before[len(before)-1])-1:], ".!?") {
		return false // the beginning of a sentence has a capital letter, too
	}
	for i := len(before) - 1; i >= max(0, len(before)-2); i-- {
		if personal[strings.Trim(before[i], ":,.(\"")] {
			return true
		}
	}
	return false
}
