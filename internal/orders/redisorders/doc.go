// Package redisorders is an orders.Store in Redis or Valkey, shared by all replicas, with an orders.Memory in front.
//
//	store, err := redisorders.Open(redisorders.Options{URL: "rediss://user:password@redis:6379/0"})
//	defer store.Close()
//
//	Get ──> memory ──> breaker ──> GET, PEXPIRE        one round trip
//	Put ──> memory ──> breaker ──> SET … NX PX, GET    one round trip
//
// Nothing that Redis does delays or fails a request. Get and Put wait for the budget at most (5 ms, or what the URL says
// as ?budget=20ms); an operation that takes longer, or fails, is answered as the memory alone would. After some failures
// in a row Redis is not asked for a while; then one operation finds out whether it answers again ([Stats].Open). What the
// memory has answered once it answers always, so a process forwards the same bytes even if another process was first
// while Redis was away.
//
// An operation whose budget is used up goes on in the background for a second: connections are made, keys exchanged and
// answers remembered, although nobody waits. So the budget can be shorter than what a new connection takes, and clients
// that go away do not cost connections. At most 64 operations are under way; more are skipped.
//
// # What is stored
//
//	<prefix>1:<tenant>:<key>   ->   orders.Encode(key, order), for the time to live since it was last asked for
//
// The tenant is the first half of its SHA-256, so names do not stand there in clear; who can guess a name can recognise it.
// What is read was checked to be an order for this place before it is used; else the place has none, and the bytes stay
// until their time is up.
//
// # Caveats
//
// One server, or whatever stands behind one address: there is no support for Redis Cluster. Needs no scripts and no
// command newer than Redis 4. An order that was put while Redis was away is not told to it later. Forget reaches Redis and
// this process; other replicas remember what they have asked for. Forget looks at all keys of the database (SCAN) and is
// bound by its context, not by the budget.
//
// go-redis writes to standard error by itself; Open turns that off for the whole process. What matters is logged to
// [Options].Log when the breaker opens and closes. A password from the URL is in no error and no log.
package redisorders
