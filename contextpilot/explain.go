package contextpilot

import (
	"fmt"
	"strings"
)

// Explain says in a few lines what was done and why; for people, not for parsing.
func (p *Plan) Explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "request %s, session %q turn %d, policy %s\n", p.RequestID, p.Session, p.Turn, p.Policy)
	b.WriteString("retrieved:")
	for i := range p.req.Blocks {
		fmt.Fprintf(&b, " %d:%s", i+1, p.labelOf(i))
	}
	b.WriteString("\nsent:")
	for i, it := range p.Items {
		if it.Ref != nil {
			continue
		}
		mark := ""
		if i < p.Prefix.Blocks {
			mark = "*"
		}
		fmt.Fprintf(&b, " %d:%s%s", it.Index+1, it.Label, mark)
	}
	fmt.Fprintf(&b, "\nexpected in cache: %d blocks (*) of this turn, %d tokens with what stands before them; as retrieved: %d tokens\n",
		p.Prefix.Blocks, p.Prefix.Tokens-p.anywhere, p.Why.Plain)
	if p.anywhere > 0 {
		fmt.Fprintf(&b, "expected of blocks that the engine keeps by themselves: %d tokens more\n", p.anywhere)
	}
	p.Why.explain(&b)
	if e := p.Echo; e != nil {
		fmt.Fprintf(&b, "shown once more next to the question: %d:%s, %d tokens\n", e.Index+1, e.Label, e.Tokens)
	}
	if hint := p.Hint; hint != "" {
		fmt.Fprintf(&b, "note to the model: %s\n", hint)
	} else if p.Reordered() {
		b.WriteString("note to the model: none about the order (it would cost more than the order saves now, or is switched off)\n")
	}
	for _, it := range p.Items {
		if it.Ref != nil {
			fmt.Fprintf(&b, "reference: %d:%s was shown as [%s] in turn %d (%s)\n", it.Index+1, it.Label, it.Ref.Label, it.Ref.Turn,
				it.Ref.RequestID)
		}
	}
	for _, l := range p.LeftOut {
		fmt.Fprintf(&b, "left out: %d:%s, %s\n", l.Index+1, p.labelOf(l.Index), l.Reason)
	}
	if p.Fault != nil {
		fmt.Fprintf(&b, "fault: %v; retrieval order\n", p.Fault)
	}
	return b.String()
}

func (p *Plan) labelOf(i int) string {
	b := p.req.Blocks[i]
	if b.ID != "" {
		return labelOf(b.ID, content{})
	}
	return labelOf("", contentOf(b.Text))
}

// Why says how an order came about. Token counts, but for Plain, are of the blocks alone, without what stands in
// front of them.
type Why struct {
	// Neighbours is the number of remembered requests that stood for the likely futures.
	Neighbours int
	// Rule arranged the blocks behind the path; "" if they follow as retrieved.
	Rule string
	// Path is the number of blocks on the resident path that was chosen, PathTokens their tokens.
	Path, PathTokens int
	// Longest is the number of tokens on the longest resident path that was seen. What it has more than
	// PathTokens was given up for later requests, or because the path is likely to be gone from the engine.
	Longest int
	// Visited is the number of index nodes looked at; Bounded: there were more.
	Visited int
	Bounded bool
	// Plain is the number of prompt tokens, in whole engine blocks, that retrieval order would find in the cache, head
	// and history included.
	Plain int
	// Retrieval is the number of tokens that this request would find if all were sent in retrieval order. Stays: it is sent in that order,
	// because another one finds too little more; then Path are its resident blocks. Both only with [TopNear], policy `best` and few blocks.
	Retrieval int
	Stays     bool
}

// reasoner is a Policy that can explain its last order.
type reasoner interface{ Why() Why }

// explain writes what was looked at, chosen and given up; nothing if the policy gives no reasons.
func (w Why) explain(b *strings.Builder) {
	if w.Visited == 0 {
		return
	}
	bound := ""
	if w.Bounded {
		bound = ", and there were more"
	}
	fmt.Fprintf(b, "candidates: %d nodes of the index looked at%s; the longest resident path has %d tokens\n", w.Visited, bound, w.Longest)
	fmt.Fprintf(b, "chosen path: %d blocks, %d tokens", w.Path, w.PathTokens)
	if given := w.Longest - w.PathTokens; given > 0 {
		fmt.Fprintf(b, "; given up: %d tokens, for later requests or because they are likely to be gone from the engine", given)
	}
	b.WriteString("\n")
	if w.Stays {
		b.WriteString("retrieval order: another path finds too little more to leave it, as later requests may begin so\n")
		return
	}
	if w.Rule == "" {
		b.WriteString("behind the path: as retrieved (no earlier request shares a block)\n")
	} else {
		fmt.Fprintf(b, "behind the path: arranged by rule %q for futures like %d earlier requests\n", w.Rule, w.Neighbours)
	}
}
