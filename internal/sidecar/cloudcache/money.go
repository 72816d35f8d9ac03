package cloudcache

// Price is in money per million tokens. Input must be given. Other fields at 0 follow from it where the provider has
// one ratio for all models: Anthropic's CacheWrite, CacheWrite1h and CacheRead are 1.25, 2 and 0.1 times Input,
// MiniMax's CacheWrite and CacheRead 1.25 and 0.1 times, OpenAI's CacheWrite 1.25 times. A price that is needed and
// neither given nor follows makes an amount unknown.
type Price struct {
	Input, CacheWrite, CacheWrite1h, CacheRead, Output float64
}

// Saved returns what the same prompt would have cost without a cache minus what it did cost: below 0 if more was
// written than read. ok is false if a needed price or number is unknown.
func (p *Provider) Saved(model string, u Usage) (money float64, ok bool) {
	price, ok := p.rates.Of(model)
	short, long, known := p.written(u)
	if !ok || !known {
		return 0, false
	}
	var b bill
	b.add(u.Read, price.CacheRead, price.Input)
	b.add(short, price.CacheWrite, price.Input)
	b.add(long, price.CacheWrite1h, price.Input)
	return b.saved / 1e6, !b.unknown
}

// Read is the usage of a prompt that was read from the cache as a whole.
func (p *Provider) Read(tokens int) Usage {
	u := Usage{Read: tokens}
	if p.protocol == openAI { // it counts in the prompt what was read
		u.Prompt = tokens
	}
	return u
}

// Cost returns what a request has cost, answer included: with an Output of 0 its prompt alone. ok is false if a needed price or
// number is unknown.
func (p *Provider) Cost(model string, u Usage) (money float64, ok bool) {
	price, ok := p.rates.Of(model)
	short, long, known := p.written(u)
	if !ok || !known || u.Prompt < 0 || u.Output < 0 {
		return 0, false
	}
	plain := u.Prompt
	if p.protocol == openAI {
		plain -= u.Read + short + long
	}
	var b bill
	b.add(max(plain, 0), price.Input, 0)
	b.add(u.Read, price.CacheRead, 0)
	b.add(short, price.CacheWrite, 0)
	b.add(long, price.CacheWrite1h, 0)
	b.add(u.Output, price.Output, 0)
	return -b.saved / 1e6, !b.unknown
}

// written returns the written tokens by how long they stay. ok is false if the cache's part is unknown.
func (p *Provider) written(u Usage) (short, long int, ok bool) {
	if u.Read < 0 || u.Written < 0 && p.protocol == messages {
		return 0, 0, false
	}
	n := max(u.Written, 0)
	switch {
	case p.protocol == openAI:
		return n, 0, true
	case u.Written1h > 0:
		long = min(u.Written1h, n)
	case p.extended:
		long = n
	}
	return n - long, long, true
}

// bill adds up, in millionths of the currency.
type bill struct {
	saved   float64
	unknown bool
}

func (b *bill) add(tokens int, price, instead float64) {
	if tokens > 0 && price == 0 {
		b.unknown = true
	}
	b.saved += float64(tokens) * (instead - price)
}
