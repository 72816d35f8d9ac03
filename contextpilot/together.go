package contextpilot

// awaiter is a Policy that can make use of knowing which requests are about to follow.
type awaiter interface{ Await(requests [][]Key) }

// PlanTogether plans requests that arrived at about the same time, one after the other as [Pilot.Plan] does; the policy knows the ones
// that follow. Only first turns are awaited: later ones share nothing. One list is planned at a time; requests planned by Plan
// meanwhile know what it awaits, too.
func (p *Pilot) PlanTogether(reqs []Request) []Plan {
	p.together.Lock()
	defer p.together.Unlock()
	plans := make([]Plan, len(reqs))
	keys := make([][]Key, len(reqs))
	defer func() {
		for i := range reqs {
			p.await(reqs[i].Scope, nil)
		}
	}()
	for i := range reqs {
		if len(reqs[i].Prior) > 0 {
			continue
		}
		for _, x := range identify(nil, reqs[i].Blocks, p.cfg.Dedup) {
			keys[i] = append(keys[i], x.key)
		}
	}
	for i := range reqs {
		var next [][]Key
		for j := i + 1; j < len(reqs); j++ {
			if reqs[j].Scope == reqs[i].Scope {
				next = append(next, keys[j])
			}
		}
		p.await(reqs[i].Scope, next)
		plans[i] = p.Plan(reqs[i])
	}
	return plans
}

func (p *Pilot) await(scope Scope, next [][]Key) {
	sc := p.findScope(scope)
	if sc == nil && next != nil {
		sc = p.scope(scope, p.cfg.Now())
	}
	if sc == nil {
		return
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if a, ok := sc.policy.(awaiter); ok {
		_ = p.guard(stageReorder, func() error { a.Await(next); return nil })
	}
}
