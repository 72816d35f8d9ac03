package testkit

import (
	"io"
	"net/http"
	"testing"
)

// Request returns a request that ends with the test; header holds names and values in turn.
func Request(t testing.TB, method, url string, body io.Reader, header ...string) *http.Request {
	t.Helper()
	r := Must(http.NewRequestWithContext(t.Context(), method, url, body))(t)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// Ask sends a request and reads the answer to its end. It ends the test if there is none.
func Ask(t testing.TB, client *http.Client, r *http.Request) (code int, header http.Header, text string) {
	t.Helper()
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode, res.Header, string(Must(io.ReadAll(res.Body))(t))
}
