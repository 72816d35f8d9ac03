// Package repeat replaces what a prompt says twice by a reference to where it stands first. Texts are cut into blocks
// of lines at places that their content decides, so that a file read twice gives the same blocks although other
// lines were added in front.
//
//	var m repeat.Memory
//	var r repeat.Result
//	for _, t := range []repeat.Text{
//		{Kind: repeat.System, Label: repeat.SystemPrompt, Text: system},
//		{Kind: repeat.ToolResult, Message: 3, Label: "read_file", Text: first},
//		{Kind: repeat.ToolResult, Message: 5, Label: "read_file", Text: second},
//	} {
//		short, err := m.Shorten(ctx, t, 0, &r)
//	}
//
// Every block that was replaced stands in full in an earlier text of another message, as it is in the result: first copies are never
// replaced. "The same" leaves out white space around a block, random IDs (see [WithoutIDs]), and numbers in front of lines if they count
// one by one, as those of a listing do: the reference shows the first of them. One reference may stand for several blocks in a row: it
// shows their last line, too, and they are as they stand above, with the white space between them. A reference leads to a text that is
// trusted as much or more: system, user, assistant, tool. References are written and never read: a text that holds such words is a text
// like any other.
//
// Blocks, keys and references are those of the published Python implementation, as recorded. All of it takes time
// linear in the texts, and memory for the blocks that are new. A [Memory] does the same for a conversation that grows,
// text by text; of a conversation it looks at 1,048,576 lines at most.
package repeat
