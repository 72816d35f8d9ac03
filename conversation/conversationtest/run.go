package conversationtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Today is what becomes of cells and variants of a front end that does not do yet what they want: the results by their names. A result that
// is what is wanted is an error there, so that no row stays behind.
type Today map[string]string

// Run plays the script, and its variants, over a front end.
func Run(t *testing.T, open New, today Today) {
	left := map[string]bool{}
	for name := range today {
		left[name] = true
	}
	check := func(t *testing.T, name, want string, got func(t *testing.T) string) {
		delete(left, name)
		t.Run(name, func(t *testing.T) {
			if reason := open(t).Skips(name); reason != "" {
				t.Skip(reason)
			}
			now, differs := today[name]
			if differs && now == want {
				t.Errorf("%q is what is wanted, and no difference", now)
			}
			if !differs {
				now = want
			}
			switch got := got(t); {
			case got == now:
			case differs && got == want:
				t.Errorf("it is %q now, as is wanted: the row that says %q can go", got, now)
			default:
				t.Errorf("got %q, want %q", got, now)
			}
		})
	}
	p := play(t, open(t), Script())
	sent, arrived := p.computed()
	t.Logf("the script's requests compute %d tokens in place of %d, with a prefix cache: %.0f %%", arrived, sent,
		100*float64(arrived)/float64(sent))
	for _, c := range Cells() {
		check(t, c.Name, c.Want, func(t *testing.T) string {
			t.Helper()
			return p.cell(c)
		})
	}
	for _, v := range variants() {
		check(t, v.name, v.want, func(t *testing.T) string { return v.play(t, open) })
	}
	for name := range left {
		t.Errorf("there is neither a cell nor a variant %q", name)
	}
}

// computed returns about how many tokens an engine with a prefix cache computes for all requests, as they were sent and as they arrived.
func (p *played) computed() (sent, arrived int) {
	var before [2]string
	for i := range p.sent {
		last, ok := p.arrived[i]
		if !ok {
			continue // a request ends with a user's or a tool's message
		}
		for k, messages := range [2][]Message{p.sent[:i+1], last} {
			var b strings.Builder
			for _, m := range messages {
				for _, t := range m.Texts {
					b.WriteString(t.Value + "\n")
				}
			}
			now := b.String()
			same := 0
			for same < min(len(now), len(before[k])) && now[same] == before[k][same] {
				same++
			}
			before[k] = now
			if tokens := (len(now) - same + 3) / 4; k == 0 {
				sent += tokens
			} else {
				arrived += tokens
			}
		}
	}
	return sent, arrived
}

// played is a script after its last request.
type played struct {
	steps   []int             // the number in the script of each message
	sent    []Message         // all
	arrived map[int][]Message // by the number of the message with which the request ended
	reports map[int]*Report   // the same
}

// play sends the script's prefixes in turn.
func play(t testing.TB, f Frontend, script []Step) *played {
	t.Helper()
	p := &played{arrived: map[int][]Message{}, reports: map[int]*Report{}}
	for i := range script {
		p.steps = append(p.steps, i)
	}
	p.on(t, f, script, 0, len(script)-1)
	return p
}

// on plays on: the messages from one number to another.
func (p *played) on(t testing.TB, f Frontend, script []Step, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		step := script[i]
		m := step.Message
		if len(step.Retrieved) > 0 {
			m.Texts = slices.Clone(m.Texts)
			m.Texts[0].Value = retrieved(f, step) + m.Texts[0].Value
		}
		p.sent = append(p.sent, m)
		if slices.Contains(requests, p.steps[i]) {
			p.send(t, f, i)
		}
	}
}

// retrieved returns the documents of a step as they stand in its text. Those of a tool come from elsewhere where there is no retriever.
func retrieved(f Frontend, step Step) string {
	if r, ok := f.(Retriever); ok {
		return r.Retrieve(step.Retrieved)
	}
	var b strings.Builder
	for _, d := range step.Retrieved {
		b.WriteString(d.block())
	}
	return b.String()
}

// send sends all messages up to one, and reads what arrived.
func (p *played) send(t testing.TB, f Frontend, last int) {
	t.Helper()
	sent := slices.Clone(p.sent[:last+1])
	arrived, err := f.Send(slices.Clone(sent))
	if err != nil {
		t.Fatalf("request that ends with #%d: %v", p.steps[last], err)
	}
	report, err := Read(sent, arrived)
	if err != nil {
		t.Fatalf("request that ends with #%d: %v", p.steps[last], err)
	}
	p.arrived[p.steps[last]], p.reports[p.steps[last]] = arrived, report
}

// last is the report of the longest request.
func (p *played) last() *Report {
	for _, n := range slices.Backward(requests) {
		if r, ok := p.reports[n]; ok {
			return r
		}
	}
	return nil
}

// cell says what became of a cell, in the last request.
func (p *played) cell(c Cell) string { return p.cellOf(p.last(), c) }

func (p *played) cellOf(r *Report, c Cell) string {
	at := slices.Index(p.steps, c.Message)
	if at < 0 {
		return "not sent"
	}
	x := r.At(at, 0)
	if x == nil {
		return "not sent"
	}
	return c.look(x, func(part Part) string {
		switch part.Kind {
		case Full:
			return "full"
		case Reference:
			return "→ " + p.place(r, part)
		case Noted:
			return "noted"
		case LeftOut:
			return "left out"
		case Cut:
			return "cut"
		}
		return "lost"
	})
}

// place names where a part stands: the call of a tool's result, else the number of the message.
func (p *played) place(r *Report, part Part) string {
	if call := r.Sent[part.Message].Texts[part.Text].Call; call != "" {
		return call
	}
	return fmt.Sprint("#", p.steps[part.Message])
}
