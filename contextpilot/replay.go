package contextpilot

// Resident returns how many tokens of a request's own path (blocks, question and answer, without the head) are in the index
// of its scope, and whether it is live there at all. O(1).
func (p *Pilot) Resident(scope Scope, id string) (tokens int, live bool) {
	sc := p.findScope(scope)
	if sc == nil {
		return 0, false
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.tree.Resident(id)
}

// Resend tells that a live request's prompt is sent once more as it was planned: by a retry, the next turn of its
// conversation, or another one that begins with the same bytes. What the index has of it counts as sent now, and goes last
// where the index is bounded. It returns what [Pilot.Resident] does; what is not live, or has lost some of its tokens, is to be
// planned again with [Request.Fixed]. It is no plan: nothing is counted. O(h) for a path of h blocks.
func (p *Pilot) Resend(scope Scope, id string) (tokens int, live bool) {
	if p.findScope(scope) == nil {
		return 0, false
	}
	sc := p.scope(scope, p.cfg.Now()) // used now
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.tree.Resend(id)
}
