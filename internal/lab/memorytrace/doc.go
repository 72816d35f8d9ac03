// Package memorytrace drives a trace of recorded retrieval through memories: its blocks are stored as memories of users, each
// request is a turn of a chain whose memory is memory.Wrap, and what comes out is a trace, blocks and a plan as the chain
// would have sent them, for a judge to count.
//
// Who is a user follows from the trace: requests that have blocks in common are one user's.
package memorytrace
