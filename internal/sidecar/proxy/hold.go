package proxy

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/internal/base/holdback"
)

// hold waits while another request computes the beginning of this one, see [Options.Hold]. An error is the context's: the client has
// left, and nothing was sent. Requests that are switched off, held out to compare with, or in shadow mode go on as if the sidecar were not
// there.
func (x *exchange) hold() (err error) {
	if x.p.opt.Hold == nil || !x.p.opt.Hold.On() || x.control.off || x.mode.asCame() {
		return nil
	}
	if inShadow, _ := x.p.opt.Live(); inShadow {
		return nil
	}
	x.enter("hold")
	prompt := holdback.Prompt{Chain: chainOf(x.tenant, x.send)}
	for _, pl := range x.turn.Plans {
		prompt.Found += pl.Expected
		prompt.Left += max(pl.Tokens-pl.Expected, 0)
	}
	x.pass, err = x.p.opt.Hold.Enter(x.r.Context(), prompt)
	return err
}

// promptMembers are the members of a body that make the beginning of its prompt, in the order in which chat templates write them; with
// a top member its text stands before the list.
var promptMembers = []string{"system", "instructions", "prompt", "messages", "input"}

// kindMembers are those that change how all of a prompt is written, or what computes it.
var kindMembers = []string{"model", "tools", "tool_choice", "chat_template", "chat_template_kwargs", "cache_salt", "lora", "id_slot"}

// chainOf names the beginnings of a body's prompt. Tenants have nothing in common: none may learn of another one's prompt by the time
// that its own takes. A body that is not understood, or whose prompt the engine must not look for in its cache, has no chain.
func chainOf(tenant string, body []byte) []uint64 {
	root := gjson.ParseBytes(body)
	if !root.IsObject() || root.Get("cache_prompt").Type == gjson.False {
		return nil
	}
	members := map[string]string{}
	root.ForEach(func(key, value gjson.Result) bool {
		members[key.Str] = value.Raw
		return len(members) < maxParts
	})
	var kind strings.Builder
	fmt.Fprintf(&kind, "%q", tenant)
	for _, name := range kindMembers {
		fmt.Fprintf(&kind, " %s", members[name])
	}
	texts := make([]string, 0, len(promptMembers))
	for _, name := range promptMembers {
		texts = append(texts, members[name])
	}
	return holdback.Chain(kind.String(), texts...)
}
