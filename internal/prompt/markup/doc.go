// Package markup is the form in which blocks stand in a prompt; docs/markup.md is its grammar:
//
//	<doc LABEL>
//	text
//	</doc>
//
// A text that itself contains "<doc" or "</doc", in any case, is fenced: the opening tag carries a word that does not occur
// in the text, and only the closing tag with that word ends the block. So a block is always sent unchanged, its bytes depend
// on the block alone, and nothing in it can end it, open another block, or stand outside.
//
//	text := markup.Render("guide.md#3", block, false)
//	for r := range markup.Regions(message) {
//		fmt.Println(r.Label, r.Text, message[r.Start:r.End])
//	}
package markup
