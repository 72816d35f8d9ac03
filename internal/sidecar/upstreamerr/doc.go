// Package upstreamerr keeps what a server sends out of the errors of HTTP clients, and so out of logs.
//
//	client := &http.Client{Transport: upstreamerr.Transport(transport)}
//
// An engine that counts the bytes of an answer wrongly sends the rest of its text where the head of the next answer is
// expected. net/http quotes such bytes in its errors: malformed HTTP response "what the model said". [Clean] replaces
// an error by a [Malformed] that says what is wrong, unless it comes from the network, TLS or the request itself.
package upstreamerr
