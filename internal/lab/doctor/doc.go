// Package doctor finds out why an engine reuses nothing. It asks a server what it is, sends it a few made-up prompts, and
// compares what comes back with what must come back: settings that are off without a word (token details, events, a block
// that is longer than what prompts share) show in it.
//
//	report, err := doctor.Run(ctx, doctor.Config{Engine: "http://127.0.0.1:8000"})
//	if err != nil { ... } // the configuration makes no sense
//	report.Print(os.Stdout)
//
// Types to know: [Config], [Report], [Check] and its [Result].
//
// vLLM, SGLang and llama.cpp are recognised and asked in their own ways, by packages engines/vllm, engines/sglang and
// engines/llamacpp; of any other OpenAI-compatible server only what its answers show is checked.
//
// # What is sent
//
// No prompt of a user. The probes are texts without meaning that begin with a random number, so that no cache has them;
// [Report.Sent] says how many there were and how long. With [Config.NoProbe] none is sent, and what only probes show is
// not known.
package doctor
