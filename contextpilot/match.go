package contextpilot

// Match is what a prompt would find in one scope's cache. All numbers are tokens.
type Match struct {
	// Prompt is the length of the prompt, as far as it is known before it is planned: head, history, blocks and
	// question. References, an echo and notes, which a plan may add, are not in it.
	Prompt int
	// Tokens are resident in front of the prompt in the order that [Pilot.Plan] would choose for this scope, Plain with the
	// blocks in retrieval order; both in whole engine blocks.
	Tokens, Plain int
	// Familiar are those of blocks that prompts in this scope had lately, at any place. What is familiar now can become
	// a shared prefix later. Only the policy `best` knows, and only of requests that begin a prompt: behind a history
	// nothing is shared.
	Familiar int
}

// Match returns what a prompt would find in req.Scope, and changes nothing: neither the index, nor what the policy has
// learned, nor the conversation. It is for choosing between replicas, since the best order differs from one to the
// other; [Pilot.Plan] with the chosen scope then makes the plan.
//
// Tokens are what Plan then reports as [Plan].Prefix, but for three things. What stands behind the blocks (notes, echo and question) is not
// followed here: where it has stood behind the same blocks before, Plan finds up to its length more. A request ID that is
// still live is not taken back first, as Plan does: the earlier plan's path counts as another request's. And a policy
// that depends on the request's ID (`random`) orders otherwise if Plan assigns it.
//
// A scope without requests matches nothing. Nor does a request at which a stage fails; the fault is counted as
// Plan's are. Time: as Plan, without notes and insertion. Safe for concurrent use.
func (p *Pilot) Match(req Request) Match {
	var one [1]Match
	p.match(&req, func(int) Scope { return req.Scope }, one[:])
	return one[0]
}

// MatchReplicas is [Pilot.Match] for several replicas of req.Scope's model and tenant, in the order of names. What depends on the
// request alone, such as counting its tokens, is done once.
func (p *Pilot) MatchReplicas(req Request, names ...string) []Match {
	out := make([]Match, len(names))
	p.match(&req, func(i int) Scope {
		scope := req.Scope
		scope.Replica = names[i]
		return scope
	}, out)
	return out
}

// match fills in what each scope holds.
func (p *Pilot) match(req *Request, scope func(i int) Scope, out []Match) {
	d := p.drafts.Get().(*draft)
	defer func() {
		d.recycle()
		p.drafts.Put(d)
	}()
	d.begin(*req)
	d.plan.forms = p.forms
	if p.prepare(d, req) != nil {
		return
	}
	prompt := d.promptTokens()
	for i := range out {
		out[i].Prompt = prompt
		if sc := p.findScope(scope(i)); sc != nil {
			p.matchScope(sc, d, &out[i])
		}
	}
}

// matchScope orders the draft as the scope's policy would, and looks how much of that is resident.
func (p *Pilot) matchScope(sc *scope, d *draft, m *Match) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	familiar := 0
	err := p.guard(stageReorder, func() (err error) {
		familiar, err = p.peek(sc, d)
		return err
	})
	if err != nil {
		return
	}
	m.Plain = d.plan.Why.Plain
	m.Tokens = m.Plain + d.gain
	m.Familiar = familiar
}

// promptTokens is the length of the prompt, without what annotate adds.
func (d *draft) promptTokens() int {
	n := d.head + int(d.rest)
	for _, e := range d.start {
		n += int(e.Tokens)
	}
	for _, e := range d.tail {
		n += int(e.Tokens)
	}
	for _, i := range d.place {
		n += int(d.tokens[i])
	}
	return n
}

// peeker is implemented by a policy whose Order would learn from being asked.
type peeker interface {
	Peek(dst []int, q Query) (order []int, familiar int)
}

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

// Resend notes that a live request's prompt is sent once more as it was planned: by a retry, the next turn of its
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
