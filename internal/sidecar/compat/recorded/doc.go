// Package recorded answers as the published Python implementation was recorded to answer: batches and incremental
// batches of contexts over package cluster's recorded variant ([Cluster], [Index]), and de-duplication along chains of
// request IDs ([Chains]). An [Index] may be shared: [Index.Reorder] takes the caller's lock, and does not hold it while
// it clusters.
//
// Clients that were written against that implementation see its orders, paths and counts; the points it gets wrong (a
// context that turns into a prefix node, a repeated block that is lost) are not followed, see docs/adr/0003.
package recorded
