package cloudcache

import "math"

// Account sums what answers reported, and what that was worth at the prices of [Options]. Tokens are the provider's own
// counts; nothing is estimated. Answers that broke off, and errors, are not in it.
type Account struct {
	Requests int `json:"requests"` // answers that said what the cache did
	Silent   int `json:"silent"`   // answers that did not; they are not in the sums
	Plain    int `json:"plain_tokens"`
	Read     int `json:"read_tokens"`
	Written  int `json:"written_tokens"`    // those for the shorter time; OpenAI's older models do not report theirs, which count as plain
	Long     int `json:"written_1h_tokens"` // Anthropic's for an hour
	Output   int `json:"output_tokens"`

	// Cost is what requests have cost, their answers included, and Saved what the same prompts would have cost without a
	// cache minus what they did cost: below 0 if more was spent on writing than reading saved. Both nil without prices. Each
	// sums over so many requests as the member behind it says: those whose prices are all known.
	Cost          *float64 `json:"cost,omitempty"`
	CostRequests  int      `json:"cost_requests,omitempty"`
	Saved         *float64 `json:"saved,omitempty"`
	SavedRequests int      `json:"saved_requests,omitempty"`
	Currency      string   `json:"currency,omitempty"`
}

// book is an account as it is kept.
type book struct {
	Account
	cost, saved float64
}

// posting is what one answer adds to a book, with its prices.
func (p *Provider) posting(model string, u Usage) book {
	short, long, ok := p.written(u)
	if !ok {
		return book{Account: Account{Silent: 1}}
	}
	out := book{Account: Account{Requests: 1, Plain: max(u.Prompt, 0), Read: u.Read, Written: short, Long: long, Output: max(u.Output, 0)}}
	if p.protocol == openAI {
		out.Plain = max(out.Plain-u.Read-short, 0)
	}
	if cost, ok := p.Cost(model, u); ok {
		out.cost, out.CostRequests = cost, 1
	}
	if saved, ok := p.Saved(model, u); ok {
		out.saved, out.SavedRequests = saved, 1
	}
	return out
}

func (b *book) add(x book) {
	b.Requests += x.Requests
	b.Silent += x.Silent
	b.Plain += x.Plain
	b.Read += x.Read
	b.Written += x.Written
	b.Long += x.Long
	b.Output += x.Output
	b.CostRequests += x.CostRequests
	b.SavedRequests += x.SavedRequests
	b.cost += x.cost
	b.saved += x.saved
}

// account returns a copy of a book's account with its money, if there are prices.
func (p *Provider) account(b book) Account {
	a := b.Account
	if len(p.rates.list) > 0 {
		a.Cost, a.Saved, a.Currency = rounded(b.cost), rounded(b.saved), p.currency
	}
	return a
}

// rounded leaves out what is only the error of adding.
func rounded(money float64) *float64 {
	return new(math.Round(money*1e9) / 1e9)
}

// Tenant is a tenant's account.
type Tenant struct {
	Name string `json:"tenant"`
	Account
}

// Tenants returns the accounts of the 1,024 tenants that were served last, the last one first: for operators.
func (p *Provider) Tenants() []Tenant {
	books := p.cache.books()
	out := make([]Tenant, 0, len(books))
	for _, b := range books {
		out = append(out, Tenant{b.name, p.account(b.book)})
	}
	return out
}
