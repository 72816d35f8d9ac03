package conversationtest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
)

// variant is another way to play the script, or another look at it.
type variant struct {
	name, want string
	play       func(t *testing.T, open New) string
}

const (
	holds   = "holds"
	notHeld = "does not hold"
	cannot  = "cannot be asked"
)

// says logs an error and says whether there was none.
func says(t *testing.T, err error) string {
	t.Helper()
	if err != nil {
		t.Log(err)
		return notHeld
	}
	return holds
}

// invariants are those that can be checked in what arrived.
var invariants = []struct {
	name  string
	check func(*Report) error
}{
	{"invariant 1: permutation", Permutation},
	{"invariant 2: no text lost", NothingLost},
	{"invariant 3: notes name targets", Named},
	{"invariant 4: targets", Targets},
	{"invariant 5: trust", Trust},
	{"invariant 6: one label, one text", OneText},
	{"invariant 7: no forged notes", NotForged},
}

func variants() []variant {
	out := []variant{}
	for _, inv := range invariants {
		out = append(out, variant{inv.name, holds, func(t *testing.T, open New) string {
			var all error
			p := play(t, open(t), Script())
			for _, n := range requests {
				all = errors.Join(all, inv.check(p.reports[n]))
			}
			return says(t, all)
		}})
	}
	out = append(
		out,
		variant{"invariant 3: earlier turns never change", holds, earlierTurns},
		variant{"invariant 8: idempotent", holds, idempotent},
		variant{"a document is cut by rows, and sent again: whole targets", holds, cutByRows},
		variant{"retry of #9", holds, retry},
		variant{"32 requests at once", holds, atOnce},
		variant{"regenerate from #4: the same up to #3", holds, regenerate},
		variant{"restart with orders: same bytes", holds, func(t *testing.T, open New) string { return restart(t, open, true) }},
		variant{"restart without: same references", holds, func(t *testing.T, open New) string { return restart(t, open, false) }},
		variant{"#9 fails, then succeeds: same edits", holds, failed},
		variant{"no name: same edits", holds, func(t *testing.T, open New) string { return another(t, open, Client{Unnamed: true}) }},
		variant{"another tenant: same edits", holds, func(t *testing.T, open New) string { return another(t, open, Client{Tenant: "another"}) }},
		variant{"another model: same edits", holds, func(t *testing.T, open New) string { return another(t, open, Client{Model: "another"}) }},
		variant{"cache marks move: same edits", holds, marked},
	)
	for _, s := range []Setting{Off, HeldOut, Shadow} {
		out = append(out, variant{string(s) + ": as it came", holds, func(t *testing.T, open New) string { return unchangedWith(t, open, s) }})
	}
	for _, c := range []struct {
		name, cell, want string
		play             func(t *testing.T, f Frontend) *played
	}{
		{"P edited in #1", "#3 P", "full", edited},
		{"P edited in #1", "#3 V", "→ #1", edited},
		{"another P in #2", "#3 P", "full", twoTexts},
		{"another P in #2", "#3 V", "→ #1", twoTexts},
		{"#1 and #2 cut", "#3 P", "full", cut},
		{"#1 and #2 cut", "#3 M", "full", cut},
		{"#1 and #2 cut", "#3 V", "full", cut},
		{"#1 and #2 cut", "#5 M", "→ #3", cut},
		{"summary of #1 to #6", "#8 rows of F", "as it came", summarised},
	} {
		out = append(out, variant{c.name + ": " + c.cell, c.want, func(t *testing.T, open New) string {
			p := c.play(t, open(t))
			i := slices.IndexFunc(Cells(), func(cell Cell) bool { return cell.Name == c.cell })
			got := p.cell(Cells()[i])
			if err := errors.Join(NothingLost(p.last()), Targets(p.last()), OneText(p.last())); err != nil {
				t.Log(err)
				got += ", and an invariant does not hold"
			}
			return got
		}})
	}
	return out
}

// earlierTurns: what arrived for a message arrives for it in every later request.
func earlierTurns(t *testing.T, open New) string {
	p := play(t, open(t), Script())
	var all error
	for i, n := range requests[1:] {
		all = errors.Join(all, Unchanged(p.arrived[requests[i]], p.arrived[n], requests[i]+1))
	}
	return says(t, all)
}

// idempotent: what arrived arrives unchanged when it is sent, through the same front end and through a new one.
func idempotent(t *testing.T, open New) string {
	f := open(t)
	p := play(t, f, Script())
	arrived := p.arrived[requests[len(requests)-1]]
	return says(t, errors.Join(Idempotent(f, arrived), Idempotent(open(t), arrived)))
}

// upTo plays the script up to a message.
func upTo(t *testing.T, f Frontend, last int) *played {
	t.Helper()
	return play(t, f, Script()[:last+1])
}

// cutByRows sends a document whose rows an earlier result has, and then again beside another: there is no whole copy to refer to where it
// was cut.
func cutByRows(t *testing.T, open New) string {
	lines := file()
	part := Document{"F", strings.Join(lines[5:60], "\n")}
	calls := textMessage(Assistant, "")
	calls.Calls = []Call{{"d1", "read"}, {"d2", "search"}, {"d3", "search"}}
	p := &played{
		steps: []int{0, 1, 2, 3, 4, 5}, arrived: map[int][]Message{}, reports: map[int]*Report{},
		sent: []Message{
			textMessage(System, "Be brief."), textMessage(User, "Look."), calls,
			resultMessage("d1", strings.Join(lines, "\n")), resultMessage("d2", elements(part, docW)), resultMessage("d3", elements(part, docG)),
		},
	}
	p.send(t, open(t), 5)
	r := p.reports[5]
	return says(t, errors.Join(Permutation(r), NothingLost(r), Targets(r)))
}

func retry(t *testing.T, open New) string {
	f := open(t)
	p := upTo(t, f, 9)
	again, err := f.Send(p.sent)
	return says(t, errors.Join(err, Unchanged(p.arrived[9], again, 10)))
}

func atOnce(t *testing.T, open New) string {
	p := upTo(t, open(t), 9)
	f := open(t)
	const n = 32
	arrived, errs := make([][]Message, n), make([]error, n, 2*n)
	var all sync.WaitGroup
	for i := range arrived {
		all.Go(func() { arrived[i], errs[i] = f.Send(slices.Clone(p.sent)) })
	}
	all.Wait()
	for _, a := range arrived[1:] {
		errs = append(errs, Unchanged(arrived[0], a, 10))
	}
	return says(t, errors.Join(errs...))
}

func regenerate(t *testing.T, open New) string {
	f := open(t)
	p := upTo(t, f, 6)
	other := textMessage(Assistant, "I try something else.")
	other.Calls = []Call{{ID: "d1", Tool: "other"}}
	after, err := f.Send(append(slices.Clone(p.sent[:4]), other, resultMessage("d1", paper("D").Text)))
	return says(t, errors.Join(err, Unchanged(p.arrived[6], after, 4)))
}

func restart(t *testing.T, open New, orders bool) string {
	f := open(t)
	r, ok := f.(Restarter)
	if !ok {
		return cannot
	}
	script := Script()
	p := upTo(t, f, 6)
	r.Restart(orders)
	p.steps = append(p.steps, 7, 8)
	p.on(t, f, script, 7, 8)
	if orders {
		return says(t, Unchanged(p.arrived[6], p.arrived[8], 7))
	}
	for _, c := range Cells() {
		if c.Message <= 6 && p.cellOf(p.reports[6], c) != p.cellOf(p.reports[8], c) {
			t.Logf("%s: %s, was %s", c.Name, p.cellOf(p.reports[8], c), p.cellOf(p.reports[6], c))
			return notHeld
		}
	}
	return holds
}

func failed(t *testing.T, open New) string {
	want := upTo(t, open(t), 9)
	f := open(t)
	failer, ok := f.(Failer)
	if !ok {
		return cannot
	}
	p := upTo(t, f, 8)
	failer.FailNext()
	sent := append(slices.Clone(p.sent), Script()[9].Message)
	if _, err := f.Send(sent); err == nil {
		return "did not fail"
	}
	arrived, err := f.Send(sent)
	return says(t, errors.Join(err, Unchanged(want.arrived[9], arrived, 10)))
}

// another plays the script for one client, then for another. What becomes of the cells must be the same.
func another(t *testing.T, open New, c Client) string {
	f := open(t)
	multi, ok := f.(Multi)
	if !ok {
		return cannot
	}
	first := play(t, f, Script())
	second := play(t, multi.As(c), Script())
	return says(t, sameCells(first, second))
}

func marked(t *testing.T, open New) string {
	f := open(t)
	marker, ok := f.(Marker)
	if !ok {
		return cannot
	}
	first := play(t, open(t), Script())
	second := play(t, marker.Marked(), Script())
	var all error
	for i, n := range requests[1:] {
		all = errors.Join(all, Unchanged(second.arrived[requests[i]], second.arrived[n], requests[i]+1))
	}
	return says(t, errors.Join(sameCells(first, second), all))
}

func sameCells(a, b *played) error {
	var differ []string
	for _, c := range Cells() {
		if x, y := a.cell(c), b.cell(c); x != y {
			differ = append(differ, c.Name+": "+y+", not "+x)
		}
	}
	if len(differ) > 0 {
		return errors.New(strings.Join(differ, "; "))
	}
	return nil
}

func unchangedWith(t *testing.T, open New, s Setting) string {
	switcher, ok := open(t).(Switcher)
	if !ok {
		return cannot
	}
	p := play(t, switcher.With(s), Script())
	return says(t, Unchanged(p.sent, p.arrived[13], len(p.sent)))
}

// edited plays the script up to #1, and then up to #3 with other words in P of #1.
func edited(t *testing.T, f Frontend) *played {
	t.Helper()
	p := upTo(t, f, 1)
	first := &p.sent[1]
	first.Texts = slices.Clone(first.Texts)
	first.Texts[0].Value = strings.Replace(first.Texts[0].Value, beginning("P"), beginning("P")+"none of ", 1)
	p.steps = append(p.steps, 2, 3)
	p.on(t, f, Script(), 2, 3)
	return p
}

// twoTexts plays the script up to #1, and then up to #3 behind an answer that has another text under the label P.
func twoTexts(t *testing.T, f Frontend) *played {
	t.Helper()
	p := upTo(t, f, 1)
	script := Script()
	script[2].Message = textMessage(Assistant, Document{"P", "This is what I make of it."}.block())
	p.steps = append(p.steps, 2, 3)
	p.on(t, f, script, 2, 3)
	return p
}

// cut plays the script up to #6, and then without #1 and #2.
func cut(t *testing.T, f Frontend) *played {
	t.Helper()
	p := upTo(t, f, 6)
	p.sent, p.steps = slices.Delete(p.sent, 1, 3), slices.Delete(p.steps, 1, 3)
	p.send(t, f, len(p.sent)-1)
	return p
}

// summarised plays the script up to #8, and then with a summary in place of #1 to #6.
func summarised(t *testing.T, f Frontend) *played {
	t.Helper()
	p := upTo(t, f, 8)
	summary := textMessage(Assistant, "P is older than M. The file begins so:\n"+strings.Join(file()[:2], "\n"))
	p.sent, p.steps = slices.Replace(p.sent, 1, 7, summary), slices.Replace(p.steps, 1, 7, 2)
	p.send(t, f, len(p.sent)-1)
	return p
}
