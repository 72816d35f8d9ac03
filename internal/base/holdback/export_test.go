package holdback

// Known returns the number of prefixes that are known.
func (g *Gate) Known() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known.Len()
}

// Order returns where the prompts of requests will stand in the order in which they are let go.
func (g *Gate) Order() *[]Prompt {
	g.mu.Lock()
	defer g.mu.Unlock()
	order := new([]Prompt)
	g.onGo = func(p Prompt) { *order = append(*order, p) }
	return order
}

// Makes returns the prefixes that the request was sent to compute.
func (p *Pass) Makes() []uint64 { return p.prompt.Chain[p.uses:] }
