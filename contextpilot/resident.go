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
