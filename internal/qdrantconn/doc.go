// Package qdrantconn is what the adapters over Qdrant have in common: a connection that is made when it is needed, and
// attempts that are repeated while the server is unavailable.
package qdrantconn
