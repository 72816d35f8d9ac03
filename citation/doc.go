// Package citation leads from the labels that a model cites in its answer back to the retrieved documents.
//
// A plan shows each block under a label, and a model that is asked to cites it as "[label]". [Sources] knows, from the plans
// of a conversation, which documents a label stands for: one that was retrieved in this turn, or in the earlier one
// that showed it if this turn only refers to it, and all documents that were merged into it because they say the same. A
// [Filter] finds the citations in an answer while it is being streamed, also where a label is split over pieces, and passes
// the text on unchanged or rewritten.
//
//	sources := citation.NewSources()
//	sources.Add(plan)
//	filter := citation.New(sources, citation.Options{})
//	response, err := engine.Generate(ctx, request, func(piece string) error {
//		_, err := io.WriteString(os.Stdout, filter.Push(piece))
//		return err
//	})
//	io.WriteString(os.Stdout, filter.End())
//	for _, c := range filter.Citations() {
//		fmt.Println(c.Label, c.Documents[0].Block.ID)
//	}
//
// # Forms
//
// A citation is a known label in one of these forms; anything else is text, so an answer's other brackets do no harm.
//
//	[guide.md#3]             as location and order notes write it
//	[guide.md#3, faq.md#7]   several at once, with "," or ";" between them
//	[doc guide.md#3]         with the word of the markup
//	<doc guide.md#3>         as the markup writes it
//
// An opening bracket and its closing one must stand on one line and no more than [MaxLength] bytes apart. If a list can
// be read in several ways, because an ID contains a comma, the longest label counts.
package citation
