package clients

import (
	"fmt"
	"slices"
	"strings"
)

// Program is a program without a fault.
type Program struct {
	Name string
	Run  func(r *Run)
}

// conversation is one of several that go on at the same time.
type conversation struct {
	say   func(text string) // asks, and keeps question and answer
	again func()            // sends the last request once more
	tune  func()            // chooses other parameters that change no prompt
	left  int               // questions
	calls bool              // whether it knows what to do if the model calls a tool
}

// shop is what a conversation is about.
type shop struct {
	text  string
	tools []Tool
}

var shops = []shop{{deskText, deskTools}, {opsText, opsTools}, {travelText, travelTools}, {reviewText, nil}, {cookText, nil}}

var details = []string{
	"It is urgent.", "Please answer in one line.", "I have asked a colleague before.", "The order is from last year.",
	"We are in Kassel.", "Money is not the problem.",
	"I am on a phone.", "A table would help.", "Somebody said the opposite.", "It worked until yesterday.", "My name is Anton.",
	"It is 16:40 here.", "Take your time.",
}

// question is one that was not asked before in this run.
func (r *Run) question(about shop, asked map[string]bool) string {
	for {
		q := []string{ask(about.text, r.rand.IntN(8))}
		for range r.rand.IntN(3) {
			q = append(q, details[r.rand.IntN(len(details))])
		}
		if r.rand.IntN(5) == 0 { // a message that carries its time
			q = slices.Insert(q, 0, fmt.Sprintf("[%02d:%02d]", r.rand.IntN(24), r.rand.IntN(60)))
		}
		s := strings.Join(q, " ")
		if r.rand.IntN(4) == 0 { // documents at the end of the prompt
			first := r.rand.IntN(len(documents) - 2)
			s += "\n\nWhat we found:\n\n" + joined([]int{first, first + 1 + r.rand.IntN(2)})
		}
		if !asked[s] {
			asked[s] = true
			return s
		}
	}
}

// mixed lets conversations of several programs go on in any order until so many requests were sent.
func mixed(r *Run, requests int, begin func(about shop) *conversation) {
	var open []*conversation
	var about []shop
	asked := map[string]bool{}
	for r.sent() < requests {
		if len(open) < 2 || len(open) < 7 && r.rand.IntN(4) == 0 {
			s := shops[r.rand.IntN(len(shops))]
			c := begin(s)
			c.left = 1 + r.rand.IntN(7)
			open, about = append(open, c), append(about, s)
		}
		n := r.rand.IntN(len(open))
		c := open[n]
		if r.rand.IntN(4) == 0 {
			c.tune()
		}
		if c.calls && about[n].tools != nil && r.rand.IntN(4) == 0 {
			t := about[n].tools[r.rand.IntN(len(about[n].tools))]
			r.Script(Answer{Calls: []Call{{"call_" + r.Hex(12), t.Name, fmt.Sprintf(`{"%s":"%s"}`, t.Props[0].Name, r.Hex(5))}}})
		}
		r.answer()
		c.say(r.question(about[n], asked))
		if r.rand.IntN(12) == 0 {
			r.answer()
			c.again()
		}
		if c.left--; c.left <= 0 {
			open, about = slices.Delete(open, n, n+1), slices.Delete(about, n, n+1)
		}
	}
}

// answer writes the next answer.
func (r *Run) answer() {
	r.Script(Answer{Text: "That is so: " + details[r.rand.IntN(len(details))] + " " +
		documents[r.rand.IntN(len(documents))][:60+r.rand.IntN(80)]})
}

// Stable returns programs in which no request may be found.
func Stable() (all []Program) {
	for _, p := range []struct {
		name        string
		runs, lines int
		begin       func(r *Run) func(shop) *conversation
	}{
		{"chat", 14, 121, stableChat},
		{"responses", 8, 101, stableResponses},
		{"anthropic", 10, 101, stableAnthropic},
		{"langchaingo", 7, 81, stableLangchain},
		{"eino", 7, 81, stableEino},
		{"adk", 4, 81, stableADK},
		{"mcp", 3, 81, stableMCP},
	} {
		for n := range p.runs {
			all = append(all, Program{fmt.Sprintf("stable-%s-%d", p.name, n+1), func(r *Run) { mixed(r, p.lines, p.begin(r)) }})
		}
	}
	return all
}
