package prefixdiff

// Seen is what an engine showed of a request. The zero value says nothing.
type Seen struct {
	Replica   string // which replica answered
	BlockSize int    // tokens of a block of the cache
	Cached    int    // prompt tokens that were in the cache, if Known
	Known     bool
	Evicted   bool // the engine reported that it removed the prefix
}
