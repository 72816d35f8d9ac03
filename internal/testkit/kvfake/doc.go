// Package kvfake stands in for an engine in tests: it publishes KV-cache events and answers replay requests over real
// ZeroMQ sockets, and makes the mistakes that tests ask for. It computes nothing and caches nothing.
//
// Events are encoded by package engines/kvevents/publish. The sockets are those of a library, and not that package's: they connect
// where a test wants that, and what follows events is so tried against sockets that are not our own.
package kvfake
