package history

// kept says what of a conversation's messages a cut leaves: those up to head, one at alone if that is not negative, and
// those from tail on.
type kept struct{ head, alone, tail int }

// cut is a choice to be made.
type cut struct {
	messages []Message
	ok       []bool // see joints
	now      kept   // what is left so far
	// open is the index of a user's message that must stay because its turn is not over; len(messages): there is none.
	open int
	// target is the number of tokens that the prompt should have after a cut between turns, inner after one within the
	// open turn, and most what it may have.
	target, inner, most int
	// size returns the tokens of the prompt after a cut.
	size func(kept) int
}

// choose returns the cut with the longest rest that has no more tokens than wanted. It falls between turns; if even
// the open turn alone has more tokens than allowed, it falls within that turn, behind the user's message and in front of
// its last step. Each message is cut together with the tool calls and answers that belong to it.
func (c *cut) choose() kept {
	for i := c.now.tail + 1; i <= c.open; i++ {
		if !c.ok[i] || i < len(c.messages) && c.messages[i].Role != User {
			continue
		}
		if k := (kept{c.now.head, -1, i}); c.size(k) <= c.target {
			return k
		}
	}
	best := c.now
	if c.open >= c.now.tail {
		best = kept{c.now.head, -1, c.open}
		if c.open == len(c.messages) || c.size(best) <= c.most {
			return best
		}
	}
	for i := max(c.open+2, c.now.tail+1); i < len(c.messages); i++ {
		if !c.ok[i] {
			continue
		}
		if best = (kept{c.now.head, c.open, i}); c.size(best) <= c.inner {
			break
		}
	}
	return best
}

// headEnd returns the index of the first message behind the pinned turns; all messages are pinned as long as these
// turns are not over.
func headEnd(n int, role func(int) Role, pinned int) int {
	for i := range n {
		if role(i) != User {
			continue
		}
		if pinned == 0 {
			return i
		}
		pinned--
	}
	return n
}

// lastUser returns the index of the last user's message, n if there is none.
func lastUser(n int, role func(int) Role) int {
	for i := n - 1; i >= 0; i-- {
		if role(i) == User {
			return i
		}
	}
	return n
}
