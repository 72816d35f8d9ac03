// Package savings measures what planning saves: requests of sessions that are held out, forwarded as they came, are compared
// with those of all other sessions. Nothing is estimated from plans; without held-out sessions there is no figure.
//
//	var m savings.Meter
//	m.Add(savings.Sample{Session: "tenant/thread", HeldOut: true, TTFT: 0.4, Computed: 2100, Cost: math.NaN()})
//	f := m.Computed() // f.OK reports whether f.Low and f.High mean anything
//
// # The interval
//
// It is sessions that are drawn, not requests: the turns of one conversation share a prompt, a user and a time of day, so
// that twenty of them say less than twenty single questions. The mean of a group is the ratio of two sums over sessions,
// R = Σy / Σn (Cochran, Sampling Techniques, ch. 6), and its variance is that of the jackknife which leaves out one
// session at a time, V = (S−1)/S · Σ (e/(N−n))² with e = y − R·n. The two groups are independent, so their variances add.
// The quantile is Student's. Its degrees of freedom are Welch's, each group's being 2V²/Var(V) with the fourth moment of
// its sessions (Satterthwaite's rule): where few sessions make most of the variance, there are few.
//
// In simulated worlds (TestCoverage) the interval holds the true value in at least 93 of 100 where sessions differ by a
// normal or lognormal effect, and in at least 90 where requests cost more the longer a conversation is and a group has
// only tens of sessions. The usual interval, over requests, holds it in 25 to 50 of 100.
//
// # Caveats
//
//   - Sessions need names. Conversations that begin alike and have no name count as one session, which makes the
//     interval wider than need be.
//   - Both groups use one engine: a held-out request finds what planned ones left in its cache and waits in the same
//     queue. The figure is what one more planned session saves there, not what the engine would do without any.
//   - Memory is bounded, see [MaxSessions].
package savings
