package conversation

import (
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// dryRunScope ends the names of scopes whose prompts were planned in a dry run, and never sent so. Journals have had the name in the
// first release's files.
const dryRunScope = " (shadow)"

func isDryRun(s contextpilot.Scope) bool { return strings.HasSuffix(s.Replica, dryRunScope) }

// Went returns whether the last request of a conversation that has begun was forwarded as it came, if that is known: the engine has its
// messages in the cache that way, so this one goes on so. Its Mode does not count.
func (e *Engine) Went(c Conversation, m Source) (asCame, known bool) {
	if begins(m) {
		return false, false
	}
	t := e.tenant(c.Tenant)
	return t.memo.went(chainsOf(&c, m, false), t.session(c.Name, e.opt.Budget))
}

// begins reports whether no message of a conversation can have been answered: there is one behind the system's, or none.
func begins(m Source) bool {
	for i := range m.Len() {
		if m.Role(i) != System {
			return i == m.Len()-1
		}
	}
	return true
}

// pass remembers that the messages were forwarded as they came, and not looked at: the last one stands for all.
func (m *memo) pass(chains []chain, from Source, by *session) {
	last, known := m.longest(chains, by)
	if n := len(chains); known < n {
		front := last == nil || last.systemOnly
		for i := known; front && i < n; i++ {
			front = from.Role(i) == System
		}
		last = m.add(&link{chain: chains[n-1], before: last, messages: n, systemOnly: front}, by)
	}
	m.sent(last, by, true)
}
