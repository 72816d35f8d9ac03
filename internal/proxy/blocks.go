package proxy

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/engines"
)

// blocksMember says where blocks stand in a chat's messages, for an engine that keeps each by itself.
const blocksMember = "blocks"

// ownBlocks reports whether a chat has the member, and whether it says something there: then its texts must stay as they are, since it
// counts their bytes.
func ownBlocks(raw []byte, d dialect) (there, says bool) {
	if d == openAI {
		gjson.ParseBytes(raw).ForEach(func(key, value gjson.Result) bool {
			if key.Str == blocksMember {
				there, says = true, says || value.Type != gjson.Null
			}
			return true
		})
	}
	return there, says
}

// withBlocks is a chat as it is sent, with what says where the documents of its texts stand: those that are found in system prompts and
// tool results that are one text. A chat that has the member keeps its own.
func (x *exchange) withBlocks(send []byte) []byte {
	if !x.p.opt.Blocks || x.dialect != openAI || x.p.opt.Provider != nil {
		return send
	}
	b, ok := readBody(send, x.dialect)
	if there, _ := ownBlocks(send, x.dialect); !ok || there {
		return send
	}
	var all []engines.BlockSpan
	tools := map[string]string{}
	for i := range b.items {
		it := b.item(i)
		it.load(x.dialect, tools)
		planned := it.role == system && x.control.system || it.role == tool && x.control.tools
		if !planned || len(it.texts) != 1 || it.texts[0].list || !utf8.ValidString(it.texts[0].value) {
			continue
		}
		found, ok := x.find(it.texts[0].value)
		if !ok || len(found.Docs) > maxDocuments {
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
