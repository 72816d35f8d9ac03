package proxy

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/prompt/extract"
)

// blocksMember says where blocks stand in a chat's messages, for an engine that keeps each by itself.
const blocksMember = "blocks"

// withBlocks is a chat as it is sent, with what says where the documents of its texts stand: those that are found in system prompts and
// tool results that are one text. A chat that has the member keeps its own.
func (x *exchange) withBlocks(send []byte) []byte {
	if !x.p.opt.Blocks || x.dialect != openAI || x.p.opt.Provider != nil {
		return send
	}
	b, ok := readBody(send, x.dialect, x.p.opt.Compat != nil)
	if !ok || b.blocks.there {
		return send
	}
	var all []engines.BlockSpan
	for i := range b.items {
		it := b.loaded(i)
		planned := it.role == conversation.System && x.control.system || it.role == conversation.Tool && x.control.tools
		if !planned || len(it.texts) != 1 || it.texts[0].list || !utf8.ValidString(it.texts[0].Value) {
			continue
		}
		found, ok := extract.Find(it.texts[0].Value, x.control.extract)
		if !ok || len(found.Docs) > conversation.MaxDocuments {
			continue
		}
		for _, s := range found.Spans() {
			all = append(all, engines.BlockSpan{Message: it.message, From: s[0], To: s[1]})
		}
	}
	if len(all) == 0 {
		return send
	}
	value, _ := json.Marshal(all) // numbers cannot fail
	return splice(send, []edit{addition(send, true, [][]byte{append([]byte(`"`+blocksMember+`":`), value...)})})
}
