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
	if hint := p.Hint; hint != "" {
		fmt.Fprintf(&b, "told to the model: %s\n", hint)
	} else if p.Reordered() {
		b.WriteString("told to the model: nothing about the order (it would cost more than the order saves now, or is switched off)\n")
	}
	for _, it := range p.Items {
		if it.Ref != nil {
			fmt.Fprintf(&b, "reference: %d:%s was shown as [%s] in turn %d (%s)\n", it.Index+1, it.Label, it.Ref.Label, it.Ref.Turn, it.Ref.RequestID)
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
