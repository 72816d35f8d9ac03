package dashboard

import (
	"fmt"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/savings"
)

// Source is asked for what the page shows. Its methods are called concurrently, Data and Picture every two seconds for each
// open page, so none may wait for an engine. What they return is only read.
type Source interface {
	Data() Data
	// Request returns a request that Data named. ok is false if it is no longer kept.
	Request(id string) (d Detail, ok bool)
	// Picture returns what an engine that Data named holds. ok is false if its index is gone.
	Picture(id string) (p Picture, ok bool)
}

// Data is all that the page shows but for the details of requests.
type Data struct {
	Notice   string    `json:"notice,omitempty"` // shown above everything, e.g. that requests are only watched
	Now      time.Time `json:"now"`
	Since    time.Time `json:"since"`      // what is counted is counted from here
	Texts    bool      `json:"texts"`      // texts of prompts are kept
	Interval float64   `json:"interval_s"` // seconds that a Sample stands for
	Shadow   bool      `json:"shadow"`     // requests are forwarded as they came: what is done would have been done
	Totals   Totals    `json:"totals"`
	Saved    Savings   `json:"saved"`
	Cloud    *Cloud    `json:"cloud"`    // nil: the engine is one's own
	Samples  []Sample  `json:"samples"`  // oldest first
	Engines  []Engine  `json:"engines"`  // by name; empty: nothing is in an index
	Feeds    []Feed    `json:"feeds"`    // empty: no engine's cache events are followed
	Sessions []Session `json:"sessions"` // last active first
	Requests []Request `json:"requests"` // newest first
	Misses   *Misses   `json:"misses"`   // nil: prompts are not compared
}

// Totals are counted since Data.Since, times to the first byte over the last requests. Tokens are those of requests whose
// answer named both numbers, held-out ones and those of shadow mode left aside.
type Totals struct {
	Requests        int        `json:"requests"`
	Failed          int        `json:"failed"`
	HeldOut         int        `json:"held_out"`
	PromptTokens    int        `json:"prompt_tokens"`
	CachedTokens    int        `json:"cached_tokens"`
	HitRatio        *float64   `json:"hit_ratio"`          // 0…1, cached of prompt tokens
	HeldOutHitRatio *float64   `json:"held_out_hit_ratio"` // the same, of held-out requests
	TTFT            *Quantiles `json:"ttft"`
	Shadow          Shadow     `json:"shadow"`
}

// Shadow is about requests that were planned and forwarded as they came.
type Shadow struct {
	Requests int      `json:"requests"`
	HitRatio *float64 `json:"hit_ratio"` // as they came
	// What would have been done to them.
	LeftOut    int `json:"left_out"`
	Replaced   int `json:"replaced"`
	CharsSaved int `json:"chars_saved"`
}

// Quantiles of times, in seconds.
type Quantiles struct {
	P50   float64 `json:"p50_s"`
	P95   float64 `json:"p95_s"`
	Count int     `json:"count"` // of times
}

// Savings are what planning saves, each measured on its own.
type Savings struct {
	Tokens  Saving  `json:"tokens"` // prompt tokens that the engine did not compute
	Seconds Saving  `json:"seconds"`
	Money   *Saving `json:"money"` // nil: nothing has a price
}

// Saving is the mean that a planned request saves. [Measured] and [Priced] make them.
type Saving struct {
	PerRequest *float64 `json:"per_request"` // nil: not measured, for the reason Why
	Low        *float64 `json:"low"`         // bounds at 95 %; nil: no interval is known
	High       *float64 `json:"high"`
	Requests   int      `json:"requests"`           // planned ones, that it is the mean of
	Currency   string   `json:"currency,omitempty"` // of money: an ISO 4217 code
	Why        string   `json:"why,omitempty"`
}

// Measured turns a comparison with held-out sessions into a Saving. Without enough of them nothing is measured, and Why
// says what is missing.
func Measured(f savings.Figure) Saving {
	switch {
	case f.Samples[0] == 0:
		return Saving{Why: "needs held-out sessions to compare with (--hold-out)"}
	case !f.OK:
		return Saving{Why: fmt.Sprintf("needs %d sessions in each group; so far %d held out and %d planned",
			savings.MinSessions, f.Sessions[0], f.Sessions[1])}
	}
	return Saving{PerRequest: new(f.Saved), Low: new(f.Low), High: new(f.High), Requests: f.Samples[1]}
}

// Priced is Measured for money in a currency.
func Priced(f savings.Figure, currency string) *Saving {
	s := Measured(f)
	s.Currency = currency
	return &s
}

// Cloud is what a provider's cache has done, by the usage in its answers.
type Cloud struct {
	Provider string    `json:"provider"`
	Currency string    `json:"currency"` // "": there are no prices
	Total    Account   `json:"total"`
	Tenants  []Account `json:"tenants"` // those served last, the last one first
}

// Account sums a tenant's answers.
type Account struct {
	Tenant  string   `json:"tenant"`
	Answers int      `json:"answers"`
	Plain   int      `json:"plain_tokens"`
	Read    int      `json:"read_tokens"`
	Written int      `json:"written_tokens"`
	Output  int      `json:"output_tokens"`
	Cost    *float64 `json:"cost"`  // nil: not known
	Saved   *float64 `json:"saved"` // against the same prompts without a cache; may be below 0
}

// Sample is one interval of time, held-out requests left aside. Those of shadow mode are in it, as they came.
type Sample struct {
	At           time.Time `json:"at"` // its beginning
	Requests     int       `json:"requests"`
	PromptTokens int       `json:"prompt_tokens"` // 0: no answer named them, there is no hit ratio
	CachedTokens int       `json:"cached_tokens"`
}

// Engine is one cache as the index sees it: prompts of one tenant to one model that begin with the same text. It is a
// belief: engines report evictions, if anything.
type Engine struct {
	ID       string   `json:"id"` // for addresses; unique
	Name     string   `json:"name"`
	Tenant   string   `json:"tenant"`
	Front    string   `json:"front"`     // what its prompts begin with, as a hash
	Tokens   *int     `json:"tokens"`    // in known prefixes
	Capacity *int     `json:"capacity"`  // tokens that the cache holds; nil: not known
	Live     *int     `json:"live"`      // prompts
	HitRatio *float64 `json:"hit_ratio"` // of its requests since it is watched
}

// Feed is one stream of cache events. While it is not complete, evictions may be missing in the index.
type Feed struct {
	Source    string     `json:"source"` // unique with Topic
	Topic     string     `json:"topic"`
	Connected bool       `json:"connected"`
	Complete  bool       `json:"complete"`
	Since     *time.Time `json:"since"` // when it ceased to be complete; nil: it is, or nothing came yet
	Cause     string     `json:"cause"` // of that
	Events    uint64     `json:"events"`
	Holes     uint64     `json:"holes"`   // batches that never came
	Problem   string     `json:"problem"` // what is wrong with the connection or the engine's settings, if known
}

// Picture is what a pilot believes an engine's cache to hold: how much it is, its largest parts, and how the hit ratio went.
// [PictureOf] makes one.
type Picture struct {
	ID       string `json:"id"`
	Live     int    `json:"live"` // requests
	Tokens   int    `json:"-"`    // in the index
	Capacity int    `json:"-"`    // of the engine's cache, in tokens, as contextpilot.Config.Capacity has it; 0: not known
	// Seen is the number of requests, the ones that came last, that Parts are counted over, and Blocks that of the nodes on their
	// paths. What is a request's own (notes, question, answer) is not among them.
	Seen   int `json:"seen"`
	Blocks int `json:"blocks"`
	// Parts are nodes with the most tokens × requests among those behind a node that is in Parts, too. Each comes behind its
	// parent and all of what is behind an earlier sibling; of siblings, the one with the most requests comes first.
	Parts []Part `json:"parts"`
	// Samples are those of the engine's requests, oldest first.
	Samples []Sample `json:"samples"`
}

// Part is a block behind others. Its name is a hash: the index knows no texts.
type Part struct {
	Name     string `json:"name"`
	Parent   int    `json:"parent"` // index of the part in front; -1: it is what prompts begin with
	Tokens   int    `json:"tokens"` // of the block
	End      int    `json:"end"`    // tokens from where prompts begin to its end
	Requests int    `json:"requests"`
}

// MaxParts is how many parts of a picture are drawn.
const MaxParts = 64

// Session is a conversation, summed over the requests that are kept of it.
type Session struct {
	ID           string    `json:"id"`
	Tenant       string    `json:"tenant"`
	Last         time.Time `json:"last"`
	Requests     int       `json:"requests"`
	HeldOut      bool      `json:"held_out"`
	PromptTokens int       `json:"prompt_tokens"` // of requests whose answer named both
	CachedTokens int       `json:"cached_tokens"`
}

// Request is one line of the list. A nil figure was not reported.
type Request struct {
	ID           string    `json:"id"` // as in the log; unique among those that are kept
	At           time.Time `json:"at"` // when it came
	Tenant       string    `json:"tenant"`
	Session      string    `json:"session"` // a name or a hash, never a text of the prompt; "": unknown
	Path         string    `json:"path"`
	Model        string    `json:"model"`
	Engine       string    `json:"engine"`   // ID of the engine whose index the prompt begins in; "": none
	HeldOut      bool      `json:"held_out"` // forwarded as it came, to compare with
	Shadow       bool      `json:"shadow"`   // forwarded as it came; what is said to be done would have been done
	Failed       bool      `json:"failed"`
	Documents    int       `json:"documents"` // found
	Reordered    int       `json:"reordered"` // documents that stand elsewhere than they came
	LeftOut      int       `json:"left_out"`  // documents that stand further up already
	Replaced     int       `json:"replaced"`  // blocks of lines, now references
	CharsSaved   int       `json:"chars_saved"`
	PromptTokens *int      `json:"prompt_tokens"`
	CachedTokens *int      `json:"cached_tokens"`    // of them from the engine's cache, by its own report
	Predicted    *int      `json:"predicted_tokens"` // that the index expected there
	TTFT         *float64  `json:"ttft_s"`           // seconds to the first byte of the answer
	Total        float64   `json:"total_s"`
}

// Misses are prompts that were not in an engine's cache as far as they could have been.
type Misses struct {
	Compared int     `json:"compared"` // prompts
	Dropped  int     `json:"dropped"`  // prompts that were not compared, because there was no room
	Currency string  `json:"currency"` // of money; "": there are no prices
	Causes   []Cause `json:"causes"`   // the one that lost most first
	Last     []Miss  `json:"last"`     // newest first
}

// Cause sums the misses with one cause.
type Cause struct {
	Source string   `json:"source"` // who says so: ragpilot, or the provider
	Cause  string   `json:"cause"`
	Misses int      `json:"misses"`
	Lost   int      `json:"lost_tokens"`
	Money  *float64 `json:"money"` // nil: not known
}

// Miss is one of them.
type Miss struct {
	At      time.Time `json:"at"` // when it was sent
	ID      string    `json:"id"`
	Against string    `json:"against"` // the earlier request that it is compared with; "": not known
	Tenant  string    `json:"tenant"`
	Session string    `json:"session"` // as the client named it; "": it did not
	Model   string    `json:"model"`
	Source  string    `json:"source"` // who says so: ragpilot, or the provider
	Cause   string    `json:"cause"`
	Reason  string    `json:"reason,omitempty"` // the provider's own word
	Path    string    `json:"path"`             // where the difference is in the request; "": in the engine, or not said
	Token   int       `json:"token"`            // tokens in front of it, estimated
	Lost    *int      `json:"lost_tokens"`      // computed again, estimated; nil: not said
	Money   *float64  `json:"money"`            // nil: not known
	Was     string    `json:"was,omitempty"`    // the texts around the difference, if texts are kept
	Is      string    `json:"is,omitempty"`
}

// Detail is what is kept of one request.
type Detail struct {
	Request
	Before *Text   `json:"before"` // the prompt as it came, best laid out by [Prompt]; nil: not kept
	After  *Text   `json:"after"`  // as it was forwarded, or in shadow mode as it would have been
	Orders []Order `json:"orders"`
	Stages []Stage `json:"stages"` // in the order of time
}

// Text is a text or its beginning.
type Text struct {
	Text  string `json:"text"`
	Bytes int    `json:"bytes"` // of the whole; 0: of Text
}

// Order is the order in which the documents of one text were put. Documents are numbered from 0 as they came.
type Order struct {
	Where string `json:"where"` // e.g. "system text"
	Sent  []int  `json:"sent"`
}

// Stage is a part of a request's time.
type Stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}
