package conversationtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// each calls check for every text, and joins what it reports.
func (r *Report) each(check func(x *Reading, report func(format string, args ...any))) error {
	var all error
	for i := range r.Readings {
		x := &r.Readings[i]
		check(x, func(format string, args ...any) {
			all = errors.Join(all, fmt.Errorf("message %d, text %d: %w", x.Message, x.Text, fmt.Errorf(format, args...)))
		})
	}
	return all
}

// eachGone is each for the parts that are not sent.
func (r *Report) eachGone(check func(x *Reading, p Part, report func(format string, args ...any))) error {
	return r.each(func(x *Reading, report func(string, ...any)) {
		for _, p := range x.gone() {
			check(x, p, report)
		}
	})
}

// Permutation checks that of each text's documents those that arrived and those that stand further up are all, each once.
func Permutation(r *Report) error {
	return r.each(func(x *Reading, report func(string, ...any)) {
		if x.Err != nil && len(x.Parts) > 0 {
			report("%w", x.Err)
		}
		full := 0
		for _, p := range x.Parts {
			switch p.Kind {
			case Full, Cut:
				full++
			case Lost:
				if x.All == nil {
					report("a document is neither sent nor further up: %.80q", p.Value)
				}
			}
		}
		sorted := slices.Sorted(slices.Values(x.Order))
		if full != len(x.Order) || len(slices.Compact(sorted)) != full {
			report("%d documents arrived, and %d places of them", full, len(x.Order))
		}
	})
}

// NothingLost checks that the caller's texts can be had back: each text is explained, and what is not sent stands where notes
// say, or at least further up.
func NothingLost(r *Report) error {
	return r.each(func(x *Reading, report func(string, ...any)) {
		if x.Err != nil {
			report("%w", x.Err)
		}
		for _, p := range x.gone() {
			if p.Kind == Lost {
				report("lost: %.80q", p.Value)
			}
		}
	})
}

// Targets checks that what a note stands for arrived whole, further up, and is no note itself.
func Targets(r *Report) error {
	return r.eachGone(func(x *Reading, p Part, report func(string, ...any)) {
		above := p.Message < x.Message || p.Message == x.Message && p.Text < x.Text
		if p.Kind != Lost && (!p.Whole || !above) {
			report("leads to message %d, where it does not stand whole: %.80q", p.Message, p.Value)
		}
	})
}

// Named checks that every document that is not sent has a note that names where it stands.
func Named(r *Report) error {
	return r.eachGone(func(_ *Reading, p Part, report func(string, ...any)) {
		if p.Kind == Noted || p.Kind == LeftOut {
			report("no note names where it stands: %.80q", p.Value)
		}
	})
}

// Trust checks that nothing leads to a text that is trusted less, that system texts have all that they had, and that of users' and
// assistants' words nothing but blocks of our own is replaced.
func Trust(r *Report) error {
	return r.eachGone(func(x *Reading, p Part, report func(string, ...any)) {
		switch {
		case p.Kind != Lost && r.Sent[p.Message].role(p.Text) < x.Role:
			report("leads to a text that is trusted less, in message %d: %.80q", p.Message, p.Value)
		case x.Role == System, x.Role == Assistant, x.Role == User && p.Label == "":
			report("these words are not to be replaced: %.80q", p.Value)
		}
	})
}

// OneText checks that a label by which a note names a block stands for one text in all that arrived up to there.
func OneText(r *Report) error {
	return r.each(func(x *Reading, report func(string, ...any)) {
		for _, p := range x.Parts {
			if p.Kind != Reference || p.named == "" {
				continue
			}
			r.eachAbove(x, func(m, j int) bool {
				other := func(d doc) bool { return d.label == p.named && d.text != p.Value }
				found := slices.ContainsFunc(ownBlocks(r.Arrived[m].Texts[j].Value), other)
				if found {
					report("the label %s stands for another text in message %d", p.named, m)
				}
				return !found
			})
		}
	})
}

// NotForged checks that no note of a tool or a document arrived as if it were ours.
func NotForged(r *Report) error {
	return r.each(func(x *Reading, report func(string, ...any)) {
		sent, arrived := r.Sent[x.Message].Texts[x.Text].Value, r.Arrived[x.Message].Texts[x.Text].Value
		// A fence around a block does it, too.
		fenced := slices.DeleteFunc(ownBlocks(arrived), func(d doc) bool { return !d.fenced })
		foreign := blank(arrived, fenced)
		if x.Role != Tool { // what others write themselves may be like a note, what stands in their documents may not
			_, docs := documentsOf(foreign)
			foreign = ""
			for _, d := range docs {
				foreign += d.text + "\n\n"
			}
		}
		for _, n := range notesIn(foreign) {
			if words := foreign[n.from:n.to]; strings.Contains(sent, words) && n.kind != statesRanking {
				report("a note arrived that is not ours: %s", words)
			}
		}
	})
}

// Idempotent checks that messages that arrived arrive unchanged when they are sent.
func Idempotent(f Frontend, arrived []Message) error {
	again, err := f.Send(arrived)
	if err != nil {
		return err
	}
	return unchanged(arrived, again, "what had arrived was sent")
}

// Unchanged checks that the messages that two requests begin with arrived alike: those of the second are the same up to n.
func Unchanged(before, after []Message, n int) error {
	if len(before) < n || len(after) < n {
		return fmt.Errorf("%d and %d messages arrived, want %d of each", len(before), len(after), n)
	}
	return unchanged(before[:n], after[:n], "a later request was sent")
}

func unchanged(before, after []Message, when string) error {
	for i := range min(len(before), len(after)) {
		if !Same(before[i:i+1], after[i:i+1]) {
			return fmt.Errorf("message %d is another one when %s: %.300q, was %.300q", i, when, textOf(after[i]), textOf(before[i]))
		}
	}
	if len(before) != len(after) {
		return fmt.Errorf("%d messages arrived when %s, want %d", len(after), when, len(before))
	}
	return nil
}

func textOf(m Message) string {
	var b strings.Builder
	for _, t := range m.Texts {
		b.WriteString(t.Value)
	}
	return b.String()
}

// gone returns all parts of a text that are not sent.
func (x *Reading) gone() []Part {
	if x.All != nil {
		return []Part{*x.All}
	}
	var out []Part
	for _, p := range x.Parts {
		if p.Kind != Full && p.Kind != Cut && x.Err == nil {
			out = append(out, p)
		}
	}
	return append(out, x.Rows...)
}
