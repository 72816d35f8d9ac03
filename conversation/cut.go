package conversation

import "slices"

// measured is a history in which cuts are chosen.
type measured struct {
	opt  *TrimOptions
	upTo []int  // tokens of the messages in front of each, and of all, with what opens the answer
	who  []Role // whose each message is; a user's with results is the tools'
	ok   []bool // the history can be cut in front of the message: no call before it has its result behind it
	head int    // the first message behind the pinned turns; the number of messages as long as these are not over
}

// kept says what a cut leaves behind the head: one message at alone if that is not negative, and those from tail on.
type kept struct{ alone, tail int }

// measure finds out where a history may be cut. What it says of a message depends on those up to there alone, so that a history
// that grows is cut as it was.
func measure(messages []Message, o *TrimOptions, tokens func(*Message) int) *measured {
	h := &measured{opt: o, upTo: []int{o.PerMessage}, head: len(messages)}
	pinned := o.Pinned
	open := map[string]bool{} // calls without a result
	isResult := func(tx Text) bool { return tx.Role == Tool }
	for i := range messages {
		m := &messages[i]
		who := m.Role
		if who == User && slices.ContainsFunc(m.Texts, isResult) {
			who = Tool
		}
		if who == User {
			clear(open) // what has no result by now never will have one
			if pinned == 0 {
				h.head = i
			}
			pinned--
		}
		h.who, h.ok, h.upTo = append(h.who, who), append(h.ok, who != Tool && len(open) == 0), append(h.upTo, h.upTo[i]+tokens(m))
		for _, c := range m.Calls {
			open[c.ID] = true
		}
		for _, tx := range m.Texts {
			if isResult(tx) {
				delete(open, tx.Call)
			}
		}
	}
	return h
}

// size returns the tokens of the first n messages' prompt with a cut.
func (h *measured) size(k kept, n int) int {
	if k.tail >= n { // nothing is cut, for the head is all
		return h.upTo[n]
	}
	tokens := h.upTo[h.head] + h.upTo[n] - h.upTo[k.tail]
	if k.alone >= 0 {
		tokens += h.upTo[k.alone+1] - h.upTo[k.alone]
	}
	if k.tail > h.head {
		tokens += h.opt.SummaryTokens
	}
	return tokens
}

// cut moves the cut of the first n messages on, so that it leaves the longest rest that the low mark permits beside the last
// turn. It falls between turns; if even the last turn alone exceeds the high mark, it falls within that turn, behind the user's message
// and in front of its last step.
func (h *measured) cut(now kept, n int) kept {
	last := n - 1 // turn
	for last >= h.head && h.who[last] != User {
		last--
	}
	if last < h.head {
		return now
	}
	most := min(h.opt.Low+h.upTo[n]-h.upTo[last], h.opt.High)
	for i := now.tail + 1; i < last; i++ {
		if k := (kept{-1, i}); h.who[i] == User && h.size(k, n) <= most {
			return k
		}
	}
	best := now
	if last >= now.tail {
		if best = (kept{-1, last}); h.size(best, n) <= h.opt.High {
			return best
		}
	}
	for i := max(last+2, now.tail+1); i < n; i++ {
		if !h.ok[i] {
			continue
		}
		if best = (kept{last, i}); h.size(best, n) <= h.opt.Low {
			break
		}
	}
	return best
}

// gone returns the messages that leave between two cuts, oldest first.
func gone(messages []Message, before, now kept) (out []Message) {
	if before.alone >= 0 && before.alone != now.alone {
		out = append(out, messages[before.alone])
	}
	for i := before.tail; i < now.tail; i++ {
		if i != now.alone {
			out = append(out, messages[i])
		}
	}
	return out
}
