package contextpilot

// correct compares an answer with what the index was sure of, and takes out what it contradicts. The scope's lock is held.
//
// What the engine counts otherwise than the plan, the plan's head and templates included, it may count otherwise in the
// prompt's beginning already, and lengths of blocks are estimates as a rule: an eighth of the prompt is always allowed for. An
// engine counts whole blocks and computes the last token always. None of this is a contradiction. What the prompts of a scope begin with (Request.HeadTokens) is not followed in the index: an engine that
// lost it, too, is believed to hold what hangs at the root until an answer tells about it.
func (p *Pilot) correct(sc *scope, ev Event) {
	planned, live := sc.tree.Resident(ev.Request)
	if !live {
		return
	}
	head := max(sc.head, 0)
	slack := (head + planned) / 8
	if ev.Prompt > 0 {
		slack = max(slack, ev.Prompt-head-planned, head+planned-ev.Prompt)
	}
	tokens := ev.Tokens - head + sc.block + slack
	if contradicted, shortened := sc.tree.Contradict(ev.Request, max(tokens, 0)); contradicted {
		p.stats.contradicted.Add(1)
		p.stats.shortened.Add(int64(shortened))
	}
}
