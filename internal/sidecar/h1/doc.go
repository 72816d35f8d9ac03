// Package h1 is an HTTP/1.1 client transport for proxies that count microseconds.
//
// net/http's transport runs two goroutines for each connection, so that a request passes between three of them on its
// way out and back. Where the upstream is on the same machine or in the same rack, waking them costs more than all else
// that a proxy does. [Transport] writes a request and reads its answer on the goroutine that asks, and starts none of
// its own: that is possible for requests that fit into the connection's buffers. All others, and everything that is not
// plain HTTP/1.1, goes to a transport of net/http.
package h1
