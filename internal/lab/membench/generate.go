package membench

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/registry"
)

// Defaults of [Options].
const (
	DefaultUsers = 4
	DefaultTurns = 200
)

// What a generated user has. A third of the facts can be replaced at most, as not every pattern has an update.
const (
	factsEach   = 60
	othersEach  = 40
	mattersEach = 12
	updatesEach = 15
	deletedEach = 5
	sessionSize = 10 // turns of a conversation
)

// Options say what [Generate] makes. The zero Options are the usual ones, with seed 0.
type Options struct {
	Seed  uint64
	Users int // 0: [DefaultUsers]
	Turns int // of chat, of each user; 0: [DefaultTurns]; below 0: none
}

// Data is what memories are measured with.
type Data struct {
	Cases []Case `json:"cases"`
	// Pairs are all pairs of a question and the fact that answers it, updates included, and Disjoint those of them that have no
	// content stem in common. Both are 0 for data that were not generated.
	Pairs    int `json:"pairs,omitempty"`
	Disjoint int `json:"disjoint,omitempty"`
}

// Case is one user.
type Case struct {
	User string `json:"user"`
	// Statements are what the user says first, in its order.
	Statements []Said `json:"told"`
	// First are questions about what was said.
	First []Question `json:"first"`
	// Updates are said after the first questions, and then what has a text in Deleted is deleted.
	Updates []string `json:"updates,omitempty"`
	Deleted []string `json:"deleted,omitempty"`
	// Then are the questions from there on.
	Then []Question `json:"then"`
	// Turns are the chat that follows.
	Turns []Turn `json:"turns,omitempty"`
	// Asked: the turns are the questions once more, and no chat that memories are made of.
	Asked bool `json:"asked,omitempty"`
}

// Said is one statement.
type Said struct {
	Speaker string `json:"speaker,omitempty"` // empty: the user
	Text    string `json:"text"`
}

// Question is asked of a memory.
type Question struct {
	Text string `json:"text"`
	// Needs are the texts that answer it; empty: what did was deleted.
	Needs []string `json:"needs,omitempty"`
	// Old is the text that Needs replaces, if there is one.
	Old string `json:"old,omitempty"`
}

// Turn is a message of the chat and its answer.
type Turn struct {
	// Session numbers the conversations of a user, from 0.
	Session int    `json:"session"`
	Text    string `json:"text"`
	Answer  string `json:"answer"`
	// Needs are the texts that answer it, and Value what an answer must say; empty: the turn needs no memory.
	Needs []string `json:"needs,omitempty"`
	Value string   `json:"value,omitempty"`
}

// fact is a pattern with its slots filled.
type fact struct {
	pattern    *pattern
	text       string
	value      string
	ask        []string
	next       string // the text that replaces it; empty: none
	nextValue  string
	forgetting bool // it is deleted
}

// now is the text that is true in the end.
func (f *fact) now() string {
	if f.next != "" {
		return f.next
	}
	return f.text
}

func (f *fact) nowValue() string {
	if f.next != "" {
		return f.nextValue
	}
	return f.value
}

// Generate makes users. Equal options give equal data on every machine.
func Generate(opts Options) (*Data, error) {
	switch {
	case opts.Users < 0:
		return nil, fmt.Errorf("users %d: want at least 1", opts.Users)
	case opts.Users == 0:
		opts.Users = DefaultUsers
	}
	if opts.Turns == 0 {
		opts.Turns = DefaultTurns
	}
	stems, err := newStems()
	if err != nil {
		return nil, err
	}
	data := &Data{}
	for i := range opts.Users {
		g := generator{rand: rand.New(rand.NewPCG(opts.Seed, uint64(i)))}
		facts := g.facts()
		data.Cases = append(data.Cases, g.person(fmt.Sprintf("user-%d", i+1), facts, opts.Turns))
		for _, f := range facts {
			data.count(stems, f.text, f.ask)
			if f.next != "" {
				data.count(stems, f.next, f.ask)
			}
		}
	}
	return data, nil
}

// count adds pairs of a text with its questions.
func (d *Data) count(s *stems, text string, ask []string) {
	for _, question := range ask {
		d.Pairs++
		if !s.share(question, text) {
			d.Disjoint++
		}
	}
}

// generator draws what one user says.
type generator struct{ rand *rand.Rand }

// person is one user with facts.
func (g *generator) person(user string, facts []fact, turns int) Case {
	c := Case{User: user}
	for i := range facts {
		c.Statements = append(c.Statements, Said{Text: facts[i].text})
	}
	for _, text := range append(g.several(texts().AboutOthers, othersEach), g.several(texts().AboutNobody, mattersEach)...) {
		c.Statements = append(c.Statements, Said{Text: text})
	}
	g.rand.Shuffle(len(c.Statements), func(i, j int) { c.Statements[i], c.Statements[j] = c.Statements[j], c.Statements[i] })
	for i := range facts {
		f := &facts[i]
		switch {
		case f.next != "":
			c.Updates = append(c.Updates, f.next)
		case f.forgetting:
			c.Deleted = append(c.Deleted, f.text)
		}
		for _, text := range f.ask {
			c.First = append(c.First, Question{Text: text, Needs: []string{f.text}})
			then := Question{Text: text, Needs: []string{f.now()}}
			switch {
			case f.forgetting:
				then.Needs = nil
			case f.next != "":
				then.Old = f.text
			}
			c.Then = append(c.Then, then)
		}
	}
	c.Turns = g.chat(facts, turns)
	return c
}

// facts draws patterns, fills them, and says which are replaced and which deleted.
func (g *generator) facts() []fact {
	all := texts().Patterns
	facts := make([]fact, 0, factsEach)
	for _, i := range g.rand.Perm(len(all))[:factsEach] {
		facts = append(facts, g.fact(&all[i]))
	}
	updates, deleted := updatesEach, deletedEach
	for i := range facts {
		f := &facts[i]
		switch {
		case f.pattern.Update != "" && updates > 0:
			updates--
		case deleted > 0:
			f.next, f.nextValue = "", ""
			f.forgetting = true
			deleted--
		default:
			f.next, f.nextValue = "", ""
		}
	}
	g.rand.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
	return facts
}

// fact fills the slots of a pattern, those of its update too.
func (g *generator) fact(p *pattern) fact {
	order := g.rand.Perm(len(p.Values))
	f := fact{pattern: p, value: p.Values[order[0]], nextValue: p.Values[order[1]]}
	fill := g.slots()
	f.text = sentence(fill.Replace(strings.ReplaceAll(p.Fact, "{v}", f.value)))
	if p.Update != "" {
		f.next = sentence(fill.Replace(strings.ReplaceAll(p.Update, "{v}", f.nextValue)))
	}
	for _, ask := range p.Questions {
		f.ask = append(f.ask, fill.Replace(ask))
	}
	return f
}

// slots fills the slots that all texts share.
func (g *generator) slots() *strings.Replacer {
	people := texts().Lists["names"]
	i := g.rand.IntN(len(people))
	j := (i + 1 + g.rand.IntN(len(people)-1)) % len(people)
	return strings.NewReplacer("{name}", people[i], "{name2}", people[j], "{city}", g.one("cities"), "{month}", g.one("months"), "{day}",
		g.one("days"))
}

// one draws from the list of a name.
func (g *generator) one(list string) string { return draw(g, texts().Lists[list]) }

func draw[T any](g *generator, all []T) T { return all[g.rand.IntN(len(all))] }

// several fills n different texts of a list.
func (g *generator) several(list []string, n int) []string {
	out := make([]string, 0, n)
	for _, i := range g.rand.Perm(len(list))[:n] {
		out = append(out, sentence(g.slots().Replace(list[i])))
	}
	return out
}

// chat is what a user says and asks afterwards: of 20 turns on average nine ask for a fact, five say something, three ask for
// what everybody knows and three say nothing.
func (g *generator) chat(facts []fact, n int) []Turn {
	var known []*fact
	for i := range facts {
		if !facts[i].forgetting {
			known = append(known, &facts[i])
		}
	}
	turns := make([]Turn, 0, max(n, 0))
	for i := range n {
		t := Turn{Session: i / sessionSize}
		switch kind := g.rand.IntN(20); {
		case kind < 9:
			f := draw(g, known)
			t.Text, t.Value = draw(g, f.ask), f.nowValue()
			t.Needs = []string{f.now()}
			t.Answer = sentence(strings.ReplaceAll(draw(g, texts().Answers), "{v}", t.Value))
		case kind < 14:
			t.Text = sentence(g.slots().Replace(draw(g, texts().SmallTalk)))
			t.Answer = draw(g, texts().Replies)
		case kind < 17:
			pair := draw(g, texts().GeneralQuestions)
			t.Text, t.Answer = pair[0], pair[1]
		default:
			pair := draw(g, texts().Greetings)
			t.Text, t.Answer = pair[0], pair[1]
		}
		turns = append(turns, t)
	}
	return turns
}

// sentence makes the first letter a capital.
func sentence(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:]
}

// stems finds the content stems of a text as bleve's English analyzer does: words without stop words, Porter's stems.
type stems struct{ analyzer analysis.Analyzer }

func newStems() (*stems, error) {
	analyzer, err := registry.NewCache().AnalyzerNamed(en.AnalyzerName)
	if err != nil {
		return nil, fmt.Errorf("analyzer %q: %w", en.AnalyzerName, err)
	}
	return &stems{analyzer}, nil
}

func (s *stems) of(text string) map[string]bool {
	found := map[string]bool{}
	for _, token := range s.analyzer.Analyze([]byte(text)) {
		found[string(token.Term)] = true
	}
	return found
}

// shared returns the content stems that two texts have in common.
func (s *stems) shared(a, b string) []string {
	var both []string
	in := s.of(b)
	for stem := range s.of(a) {
		if in[stem] {
			both = append(both, stem)
		}
	}
	return both
}

// share reports whether two texts have a content stem in common.
func (s *stems) share(a, b string) bool { return len(s.shared(a, b)) > 0 }
