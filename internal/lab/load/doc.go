// Package load replays a trace under load: many conversations at a time, whose requests arrive by a clock or by a number
// of users, and wait for each other in the engine. It is what `ragpilot replay --arrivals` does.
//
// [Parse] reads when conversations begin, a [Job] is one run of a trace with one policy, one rate and one seed.
// [Job.Simulate] runs it in virtual time on a [sim.Server], [Job.Drive] in real time on any [engines.Engine]; both return
// a [Run]. [Summarise] takes the runs of several seeds together into a [Point], [FindRate] looks for the largest rate at
// which the time to the first token stays within a bound, and [Plots] draws points.
//
//	job := load.Job{Settings: settings, Trace: requests, Blocks: blocks, Arrivals: arrivals, Seed: 1}
//	run, err := job.Simulate(ctx, load.H100().Server(0, load.Replies(requests, 0)))
//	fmt.Println(run.TTFT(0.95), run.OutputRate(), run.HitRatio())
//
// An [EngineModel] says how fast the simulated engine is. [Fit] finds its constants from [Sample]s of a real one.
//
// # Caveats
//
// A trace is finite. Beyond the rate that an engine sustains, its queue grows until the trace ends, and the times of a
// run say how long the trace was. In virtual time planning takes no time.
package load
