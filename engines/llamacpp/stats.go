package llamacpp

import "github.com/ragpilot/ragpilot/engines"

// Prediction is what the engine expects of a request before it is sent.
type Prediction struct {
	Request string // its ID, as given
	Prompt  int    // tokens of the prompt in the model's chat template; 0: not known
	Cached  int    // of these, how many the server takes from the slot
	Slot    int    // the slot; -1: the server could not be asked
	// Exact says that the slot's tokens are known as far as they matter. The server then reports Cached, or more if its
	// host cache has more. If Exact is false Cached is a lower bound.
	Exact bool
}

// Stats counts what became of the predictions, since New. Answers without a count of cached tokens are not in it.
type Stats struct {
	Equal    uint64 // predictions that the server's report equalled
	Above    uint64 // the report was above the prediction: the host cache, or a lower bound
	Below    uint64 // the report was below it: others use the server, or its model does not keep every prefix
	Blind    uint64 // requests sent without a prediction
	Odd      uint64 // answers to a prompt of another length than predicted, for example with images
	Restarts uint64 // restarts of the server that were noticed
	Looks    uint64 // times that the server's slots were asked for
	Disk     DiskStats
}

// count compares a prediction with the report. It returns whether the report was below it.
func (s *Stats) count(p Prediction, u engines.Usage) (below bool) {
	if !u.CachedKnown {
		return false
	}
	switch {
	case p.Slot < 0 || p.Prompt == 0:
		s.Blind++
	case p.Prompt != u.PromptTokens:
		s.Odd++
	case u.CachedTokens == p.Cached:
		s.Equal++
	case u.CachedTokens > p.Cached:
		s.Above++
	default:
		s.Below++
		return true
	}
	return false
}

// Slot is what the engine believes that one of the server's slots holds.
type Slot struct {
	Tokens   int  // those that are known
	Length   int  // all; -1: not known
	Busy     bool // a request of this engine runs on it
	Requests int  // served requests whose tokens lie here
}
