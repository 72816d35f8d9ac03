// Package recorded answers as the published Python implementation was recorded to answer: batches and
// incremental batches of contexts over package cluster's recorded variant, and de-duplication along chains of
// request IDs. Clients that were written against that implementation see its orders, paths and counts; the
// points it gets wrong (a context that turns into a prefix node, a repeated block that is lost) are not
// followed, see docs/adr/0003.
package recorded
