package cloudcache

import (
	"encoding/json"
	"time"

	"github.com/zeebo/xxh3"
)

// Handle is a request on its way: what its prompt begins with. Nothing is known of the zero Handle.
type Handle struct {
	tenant, model string
	at            time.Time
	prefixes      []xxh3.Uint128 // from the shortest to the one that the provider is asked to keep
	ttl           time.Duration  // of that one
	names         []string       // see Carrying
}

// own is the key of the prefix that the provider is asked to keep. There must be one.
func (h *Handle) own() key { return key{h.tenant, h.prefixes[len(h.prefixes)-1]} }

// maxPrefixes bounds the memory and work for one request: of a longer prompt the last so many prefixes are looked up.
const maxPrefixes = 4096

// Sent describes a request as it is forwarded, with its breakpoints, for [Provider.Answered]. Nothing is counted or
// kept before that, so a request that fails needs no call. It takes some milliseconds a megabyte.
func (p *Provider) Sent(tenant, path string, body []byte) Handle {
	h := Handle{tenant: tenant, at: p.now()}
	if !p.serves(path) || !json.Valid(body) {
		return h
	}
	read := readMessages
	if p.protocol == openAI {
		read = readOpenAI
	}
	prompt, ok := read(body)
	if !ok {
		return h
	}
	h.model = prompt.model
	last := len(prompt.blocks) - 1
	h.ttl = p.ttl
	if p.protocol == openAI {
		if prompt.long {
			h.ttl = p.long
		}
	} else {
		for !prompt.auto && last >= 0 && !prompt.blocks[last].marked {
			last--
		}
		hour := last >= 0 && prompt.blocks[last].hour
		if prompt.auto {
			hour = prompt.root.get("cache_control").Get("ttl").Str == "1h"
		}
		if hour {
			h.ttl = time.Hour
		}
	}
	h.prefixes = prompt.prefixes(body, last)
	return h
}

// prefixes returns the hashes of the prefixes that end with the blocks up to last. Breakpoints do not count, and a
// string is the same as the one text block it stands for: marks come and go from turn to turn.
func (p *prompt) prefixes(body []byte, last int) []xxh3.Uint128 {
	hash := xxh3.New()
	end := []byte{0} // stands in no JSON text
	for _, s := range p.seed {
		_, _ = hash.WriteString(s)
		_, _ = hash.Write(end)
	}
	var sums []xxh3.Uint128
	message := inTools - 1
	for i := range p.blocks[:last+1] {
		b := &p.blocks[i]
		if b.message != message {
			message = b.message
			_, _ = hash.Write(end)
			_, _ = hash.WriteString(b.role)
		}
		_, _ = hash.Write(end)
		switch {
		case b.bare:
			_, _ = hash.WriteString(bareBegin[1:])
			_, _ = hash.Write(body[b.from:b.to])
			_, _ = hash.WriteString("}")
		case b.cut.to > 0:
			_, _ = hash.Write(body[b.from:b.cut.from])
			_, _ = hash.Write(body[b.cut.to:b.to])
		default:
			_, _ = hash.Write(body[b.from:b.to])
		}
		if last-i < maxPrefixes {
			sums = append(sums, hash.Sum128())
		}
	}
	return sums
}
