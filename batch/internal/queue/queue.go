package queue

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/ragpilot/ragpilot/engines"
)

// Causes that callers can distinguish with errors.Is.
var (
	ErrNotFound = errors.New("no such batch job")
	ErrExists   = errors.New("there is a batch job with this name")
	ErrState    = errors.New("its state does not allow this")
	// ErrAway is what [WorkerOptions].Do returns, wrapped, if its engine cannot be reached: the subtree is left to other workers, and
	// uses up none of its attempts.
	ErrAway = errors.New("the engine cannot be reached")
	// ErrLost: another process has removed the job while it was being loaded, because this one gave no sign of life.
	ErrLost = errors.New("the batch job was removed while it was loaded")
)

// State is what a job is doing.
type State string

// The states of a job.
const (
	Loading   State = "loading"   // its requests are being stored; no worker sees it
	Running   State = "running"   // workers may take its subtrees
	Paused    State = "paused"    // no new request starts until Resume
	Cancelled State = "cancelled" // no new request starts; answers stay
	Finished  State = "finished"  // every request has an answer or a failure
	Failed    State = "failed"    // given up for the reason in Job.Reason; answers stay
)

// Ended reports whether the state is final.
func (s State) Ended() bool { return s == Cancelled || s == Finished || s == Failed }

// Job is a batch job.
type Job struct {
	ID       int64
	Name     string
	Spec     json.RawMessage // the caller's; it is stored as it is and should hold no secrets
	State    State
	Reason   string // why it is paused, cancelled or failed
	Requests int
	Rows     int
	Subtrees int
	Created  time.Time
	Ended    time.Time // zero: it has not
}

// NewJob is what a job is made from.
type NewJob struct {
	Name string // unique; 1 to 200 bytes, not a number, without control characters
	Spec json.RawMessage
}

// Request is one prompt of a job, as it waits for its answer.
type Request struct {
	Seq     int             // its place in the order of execution, from 0
	Subtree int             // requests of one subtree share a prefix and are one River job; subtrees count from 0 in order
	Rows    []int           // the rows that the answer is for, from 0; a row belongs to one request at most
	Text    string          // the part of the prompt that differs between rows
	Body    json.RawMessage // instead of Text: a whole request body (OpenAI batch input)
}

// Answer is what became of a request: an answer, or a reason why there is none.
type Answer struct {
	Seq      int
	Text     string
	Finish   string
	Usage    engines.Usage
	Attempts int           // calls of the engine, all together
	Took     time.Duration // of the last attempt
	Replica  string        // the engine that answered
	Failure  Failure       // why the request failed for good; the zero Failure: it did not
	At       time.Time     // when it was stored; Store sets it if it is zero
}

// Failure is the reason why a request has no answer.
type Failure struct {
	Code    string // for programs: "refused", "schema", "too_large", "attempts", ...
	Message string // for people
	Status  int    // HTTP status, 0 if there was none
}

// Counts are sums over answers.
type Counts struct {
	Done, Failed            int // requests with an answer, and with a failure
	RowsDone, RowsFailed    int
	PromptTokens            int64
	CachedTokens            int64 // of PromptTokens
	OutputTokens            int64
	Attempts                int64 // calls of engines
	FirstAnswer, LastAnswer time.Time
}

// Progress is how far a job is.
type Progress struct {
	Counts
	Requests, Rows int               // of the whole job
	Replicas       map[string]Counts // by the engine that answered
}

func (c *Counts) add(other *Counts) {
	c.Done += other.Done
	c.Failed += other.Failed
	c.RowsDone += other.RowsDone
	c.RowsFailed += other.RowsFailed
	c.PromptTokens += other.PromptTokens
	c.CachedTokens += other.CachedTokens
	c.OutputTokens += other.OutputTokens
	c.Attempts += other.Attempts
	if c.FirstAnswer.IsZero() || other.FirstAnswer.Before(c.FirstAnswer) {
		c.FirstAnswer = other.FirstAnswer
	}
	if other.LastAnswer.After(c.LastAnswer) {
		c.LastAnswer = other.LastAnswer
	}
}
