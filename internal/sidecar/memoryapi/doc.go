// Package memoryapi serves a memory store to clients of Mem0: the routes of its self-hosted server, and those that its Python
// client calls at the hosted service. Shapes and status codes are those of mem0ai 2.0.18.
//
// What Mem0 does and a store here does not is refused with a message that names it, never ignored: other settings by
// POST /configure, instructions by a model, webhooks and exports.
package memoryapi
