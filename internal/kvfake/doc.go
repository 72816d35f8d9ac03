// Package kvfake stands in for an engine in tests: it publishes KV-cache events and answers replay requests over real
// ZeroMQ sockets, and makes the mistakes that tests ask for. It computes nothing and caches nothing.
package kvfake
