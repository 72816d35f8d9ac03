package tracing_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func TestParseHeaders(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":                                {},
		" , ,":                            {},
		"api-key=hush":                    {"api-key": "hush"},
		"Authorization=Basic aHVzaA==":    {"Authorization": "Basic aHVzaA=="},
		"Authorization=Basic%20aHVzaA%3D": {"Authorization": "Basic aHVzaA="},
		" a = 1 ,b=%2C, c=":               {"a": "1", "b": ",", "c": ""},
		"a=1,a=2":                         {"a": "2"},
	} {
		got, err := tracing.ParseHeaders(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		"hush":                     "header 1: want name=value",
		"a=b,Authorization: hush":  "header 2: want name=value",
		"=hush":                    "header 1: its name",
		"a b=hush":                 "header 1: its name",
		"Authorization: hush=hush": "header 1: its name",
		"a=hush%zz":                "header 1: its value",
		"a=hush%0Ahush":            "header 1: its value",
		"a=hush\x7f":               "header 1: its value",
	} {
		_, err := tracing.ParseHeaders(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// What is taken can be sent.
func FuzzParseHeaders(f *testing.F) {
	for _, seed := range []string{"a=b", "a=%20,b", "=,=", "a=%00", "Authorization=Basic x==", "\xff=\xff", "a=\t"} {
		f.Add(seed)
	}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	f.Cleanup(server.Close)
	client := server.Client()
	f.Fuzz(func(t *testing.T, text string) {
		headers, err := tracing.ParseHeaders(text)
		if err != nil {
			return
		}
		r := testkit.Request(t, http.MethodGet, server.URL, http.NoBody)
		for name, value := range headers {
			if !strings.EqualFold(name, "Content-Length") && !strings.EqualFold(name, "Transfer-Encoding") {
				r.Header.Set(name, value)
			}
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		_ = resp.Body.Close()
	})
}
