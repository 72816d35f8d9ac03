// Package history keeps the messages of a conversation within an engine's window, in a way that its prefix cache
// survives.
//
// A sliding window drops the oldest message in every turn, so that every prompt has another beginning and is
// computed in full. A [Chat] lets the history grow up to a high mark and then cuts it down to a low mark at once.
// Between two cuts each prompt begins with the whole prompt before it. What is never cut stands in front: the system
// prompt and the first turns, if so configured. A summary of what was cut, if there is one, stands behind them, so that a new
// summary leaves them cached.
//
//	┌────────┬──────────────┬─────────┬─────────────────────────┬──────────┐
//	│ system │ pinned turns │ summary │ turns since the cut ... │ new turn │   answer
//	└────────┴──────────────┴─────────┴─────────────────────────┴──────────┘
//	└── the same for ever ──┘         └── grows up to the high mark ───────┘
//	                        └── replaced at a cut
//
// # References
//
// A kept turn may refer to a block that an earlier turn showed. When that one is cut, the block takes the place of the
// first reference to it, and the next turn goes on behind what the messages show now ([contextpilot.Pilot.Behind]). So no message
// refers to what is not there, and a block that has left is sent in full when it is retrieved again.
//
// # Bounds
//
// Tokens are counted by the pilot's tokenizer, message by message, and [Config].PerMessage is added for each. If the
// tokenizer is exact, that is, never counts a message lower than the engine does, no prompt exceeds Window − Answer. With
// an estimate the bound holds as long as the estimate is low by no more than [Config].Margin.
//
//	chat, err := history.New(pilot, history.Config{System: system, Window: 8192, Answer: 1024})
//	turn, err := chat.Ask(ctx, question, blocks...)
//	answer := send(turn.Plan.RequestID, turn.Messages)
//	chat.Answer(answer)
package history
