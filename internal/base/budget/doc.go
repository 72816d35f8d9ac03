// Package budget bounds the bytes that the tables of a server remember of all tenants together.
//
//	b := budget.New(256 << 20)
//	part := b.Part(tenant, "orders", table.dropOldest) // what one tenant has in one table
//	part.Add(n)                                        // under the table's lock
//	b.Settle()                                         // without it: drops until everything fits
//
// When the budget is exceeded, the tenant that holds most loses first: from its parts in proportion to what they hold, and
// there what was used least recently. A tenant that holds less than the others therefore loses nothing to them.
package budget
