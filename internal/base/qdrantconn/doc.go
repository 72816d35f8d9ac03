// Package qdrantconn is what the adapters over Qdrant have in common: a connection that is made when it is needed,
// attempts that are repeated while the server is unavailable, and what errors of the client stand for.
package qdrantconn
