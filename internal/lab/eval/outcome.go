package eval

// Outcome is one row with what every arm made of it.
type Outcome struct {
	Row      string `json:"row"`
	Session  string `json:"session,omitempty"`
	Turn     int    `json:"turn"`
	GoldRank int    `json:"gold_rank,omitempty"`
	// Arms are in the order of the run's.
	Arms []Answer `json:"arms"`
}

// Answer is what the model said and how likely the row's answer was to it.
type Answer struct {
	Arm string `json:"arm"`
	// Prompt is a hash of the messages. Arms with the same messages have the same answer: the model was asked once.
	Prompt string `json:"prompt"`
	Layout
	Text string `json:"text"`
	Match
	// NLL is the negative log likelihood of the row's answer, per token, in nats; nil: the scorer does not tell.
	NLL *float64 `json:"nll,omitempty"`
	// KL is the divergence from the plain arm's distribution to this one's at the answer's tokens, KL(plain ‖ arm), in nats per
	// token; nil: the scorer does not tell.
	KL *float64 `json:"kl,omitempty"`
}
