// Package engines talks to what generates: one [Engine] interface for inference servers and simulators, so
// that a program can be written, tested and measured against any of them.
//
// An engine takes a [Request], streams the answer, and returns a [Response] whose [Usage] says how many prompt
// tokens came from the prefix cache. It is given the request's ID and gives it back, and it reports to its
// subscribers what its cache lost as [github.com/ragpilot/ragpilot/contextpilot.Event] values, ready for
// Pilot.Observe. Implementations: engines/openai (any OpenAI-compatible server), engines/vllm, engines/sglang and
// engines/llamacpp (what these servers have beside chats), engines/local (a model in this process), engines/sim (an
// in-process simulator with a real block-hash prefix cache). enginetest holds the suite that all of them pass.
package engines
