// Package redisorders is an orders.Store in Redis or Valkey, shared by all replicas, with an orders.Memory in front.
//
//	store, err := redisorders.Open(redisorders.Options{URL: "rediss://user:password@redis:6379/0"})
//	defer store.Close()
//
//	Get ──> memory ──> breaker ──> GET, PEXPIRE                  one round trip
//	Put ──> memory ──> breaker ──> MULTI, SET … NX PX, GET, XADD  one round trip
//	Follow: XREAD BLOCK ──> orders of all replicas, ahead of need; then SET of what was chosen alone
//
// Nothing that Redis does delays or fails a request. Get and Put wait for the budget at most (5 ms, or what the URL says
// as ?budget=20ms). After some failures in a row Redis is not asked for a while; then one operation finds out whether it
// answers again ([Stats].Open). What the memory has answered once it answers always.
//
// # While Redis does not answer
//
// All replicas still choose alike, without asking each other. A place whose order was put before that has the order that
// was read ahead: with [Store.Follow] each replica reads all orders as they are put, from a stream of the latest 65,536.
// Any other place has the order in which the documents came: Put returns that one, and not the one that it was given.
// When Redis answers again, Follow writes these orders. For three pauses new places still get the order in which their
// documents came, as other replicas may not have written theirs yet. A replica that starts while Redis does not answer
// knows no order from before.
//
// An operation whose budget is used up goes on in the background for a second: connections are made, keys exchanged and
// answers remembered, although no request waits. So the budget can be shorter than what a new connection takes, and clients
// that go away do not cost connections. At most 64 operations are under way; more are skipped. What Redis stores late for
// such a Put is replaced by the order that was used.
//
// # What is stored
//
//	<prefix>1:<tenant>:<key>   ->   orders.Encode(key, order), for the time to live since it was last asked for
//	<prefix>1:latest           ->   a stream of the same, in the order in which they were put
//
// The tenant is the first half of its SHA-256, so names do not stand there in clear; who can guess a name can recognise it.
// What is read was checked to be an order for this place before it is used; else the place has none, and the bytes stay
// until their time is up.
//
// # Caveats
//
// One server, or whatever stands behind one address: there is no support for Redis Cluster. Needs no scripts and no
// command newer than Redis 5. Forget reaches Redis, this process and what other replicas have read ahead; they remember
// what they have asked for. Forget looks at all keys of the database (SCAN) and is bound by its context, not by the budget.
// Orders that were chosen alone are lost with the process until they are written; of more than 65,536 the latest are kept.
//
// go-redis writes to standard error by itself; Open turns that off for the whole process. What matters is logged to
// [Options].Log when the breaker opens and closes. A password from the URL is in no error and no log.
package redisorders
