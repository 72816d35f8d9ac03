// Package httpload sends chat requests to OpenAI-compatible servers and measures how long the answers take. It is what
// `ragpilot bench serve` does.
//
//	report, err := httpload.Run(ctx, httpload.Config{
//		Target: target, Bodies: bodies, Load: httpload.Load{Rate: 200}, WarmUp: 2 * time.Second, Duration: 10 * time.Second,
//	})
//	fmt.Println(report.Latency.P99, report.Errors)
//
// [Run] loads one server, [Compare] two in turn, [Streams] holds many streams open and checks each byte of them. [Generate]
// makes requests with documents, [ReadBodies] takes recorded ones. [Histogram] keeps times, [WatchMemory] a process's size.
//
// # What is measured
//
// At a rate (an open loop) requests are due by the clock, whatever became of those before, and their times count from
// the moment at which they were due: a server that stalls for a second is charged with what all requests due in that second
// waited, not only the one that happened to be under way ("coordinated omission"). [Report].Late says how much of it
// was this program's own delay. With a number of clients (a closed loop) each sends its next request when it has
// its answer, and times count from sending.
//
// Latency is the time to the last byte of the answer, TTFT that to the first chunk of a stream that has text. Both are
// of answers that were complete; all others are counted by what was wrong with them. All times are in microseconds
// in reports, and [time.Duration] elsewhere.
//
// # Caveats
//
// Everything runs on one machine's clock, and usually on the cores of the server: see what [Compare] makes of
// the same server twice before believing a difference.
package httpload
