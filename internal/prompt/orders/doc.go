// Package orders remembers what order was chosen for the documents at one place of a conversation, so that every restart
// and every replica forwards the same bytes.
//
//	Store    what the proxy asks; the first order that is put for a place is the place's order
//	Memory   a Store of one process
//	Encode   an order as bytes, for stores that keep it elsewhere
//
// Package redisorders is a Store that replicas share, package orderstest what every Store must do.
//
//	key := orders.Key(chain) // of the item that holds the documents
//	order, ok := store.Get(ctx, tenant, key)
//	if !ok || len(order) != len(docs) {
//		order = store.Put(ctx, tenant, key, plan(docs))
//	}
//
// # Caveats
//
// An order is never needed: without one the documents are planned again, which costs a miss in the engine's cache and
// nothing else. So no method of the request's path returns an error. A key must depend on everything that the number of
// documents follows from; a place with another number of documents is another place.
package orders
