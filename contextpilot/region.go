package contextpilot

import "iter"

// Region is a rendered block that was found in a text: text[Start:End] runs from its opening to its closing tag, without the line feed
// behind it.
type Region struct {
	Label, Text string
	Start, End  int
}

// Regions walks over the rendered blocks that stand in a text, outside of other blocks, from left to right. Markup that is not closed
// is passed over. It is what [Pilot.Plan] looks for in Request.Prior. Linear in the length of the text.
func Regions(text string) iter.Seq[Region] {
	return func(yield func(Region) bool) {
		scanBlocks(text, func(r region) bool { return yield(Region{r.label, r.text, r.start, r.end}) })
	}
}

// RenderFull returns item i with its text, also where the plan only refers to an earlier message: under the label that
// the reference names, so that it can take the place of the block it refers to when that one leaves the
// conversation, and later references lead to it.
func (p *Plan) RenderFull(i int) string {
	it := p.Items[i]
	if it.Ref == nil {
		return p.RenderItem(i)
	}
	return renderBlock(p.forms, it.Ref.Label, p.req.Blocks[it.Index].Text)
}
