package ui

import "time"

// Source is asked for what the page shows. Both methods are called concurrently, Data every two seconds for each open
// page, so neither may wait for an engine. What they return is only read.
type Source interface {
	Data() Data
	// Request returns a request that Data named. ok is false if it is no longer kept.
	Request(id string) (d Detail, ok bool)
}

// Data is all that the page shows but for the details of requests.
type Data struct {
	Notice   string    `json:"notice,omitempty"` // shown above everything, e.g. that requests are only watched
	Now      time.Time `json:"now"`
	Since    time.Time `json:"since"`      // what is counted is counted from here
	Texts    bool      `json:"texts"`      // texts of prompts are kept
	Interval float64   `json:"interval_s"` // seconds that a Sample stands for
	Totals   Totals    `json:"totals"`
	Saved    Savings   `json:"saved"`
	Samples  []Sample  `json:"samples"`  // oldest first
	Engines  []Engine  `json:"engines"`  // empty: no index is kept
	Sessions []Session `json:"sessions"` // last active first
	Requests []Request `json:"requests"` // newest first
}

// Totals are counted since Data.Since, times to the first byte over the last requests. Tokens are those of requests whose
// answer named both numbers, held-out ones left aside.
type Totals struct {
	Requests        int        `json:"requests"`
	Failed          int        `json:"failed"`
	HeldOut         int        `json:"held_out"`
	PromptTokens    int        `json:"prompt_tokens"`
	CachedTokens    int        `json:"cached_tokens"`
	HitRatio        *float64   `json:"hit_ratio"`          // 0…1, cached of prompt tokens
	HeldOutHitRatio *float64   `json:"held_out_hit_ratio"` // the same, of held-out requests
	TTFT            *Quantiles `json:"ttft"`
}

// Quantiles of times, in seconds.
type Quantiles struct {
	P50   float64 `json:"p50_s"`
	P95   float64 `json:"p95_s"`
	Count int     `json:"count"` // of times
}

// Savings are what planning saves, each measured on its own.
type Savings struct {
	Tokens  Saving `json:"tokens"` // prompt tokens that the engine did not compute
	Seconds Saving `json:"seconds"`
	Money   Saving `json:"money"`
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

// Sample is one interval of time, held-out requests left aside.
type Sample struct {
	At           time.Time `json:"at"` // its beginning
	Requests     int       `json:"requests"`
	PromptTokens int       `json:"prompt_tokens"` // 0: no answer named them, there is no hit ratio
	CachedTokens int       `json:"cached_tokens"`
}

// Engine is one engine's cache as the index sees it. It is a belief: engines report evictions, if anything.
type Engine struct {
	Name      string   `json:"name"`      // unique
	Tokens    *int     `json:"tokens"`    // in known prefixes
	Capacity  *int     `json:"capacity"`  // tokens that the cache holds
	Live      *int     `json:"live"`      // requests
	Evictions *int     `json:"evictions"` // that the engine reported
	Prefixes  []Prefix `json:"prefixes"`  // the largest, largest first; may be empty
}

// Prefix is the beginning that prompts share.
type Prefix struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
	Live   int    `json:"live"` // requests that begin with it
}

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
	HeldOut      bool      `json:"held_out"` // forwarded as it came, to compare with
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

// Detail is what is kept of one request.
type Detail struct {
	Request
	Before *Text   `json:"before"` // the prompt as it came, best laid out by [Prompt]; nil: not kept
	After  *Text   `json:"after"`  // as it was forwarded
	Orders []Order `json:"orders"`
	Stages []Stage `json:"stages"` // in the order of time
}

// Text is a text or its beginning.
type Text struct {
	Text  string `json:"text"`
	Bytes int    `json:"bytes"` // of the whole; 0: of Text
}

// Order tells how the documents of one text were put. Documents are numbered from 0 as they came.
type Order struct {
	Where string `json:"where"` // e.g. "system text"
	Sent  []int  `json:"sent"`
}

// Stage is a part of a request's time.
type Stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}
