package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/engines/discover"
	"github.com/ragpilot/ragpilot/engines/discover/kubernetes"
)

var _ discover.Source = (*kubernetes.Source)(nil)

// page is an EndpointSliceList in the form that the API documents.
const page = `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":"7"%s},"items":[
 {"metadata":{"name":"vllm-abc","labels":{"kubernetes.io/service-name":"vllm"}},"addressType":"IPv4","endpoints":[
  {"addresses":["10.1.0.4"],"conditions":{"ready":true,"serving":true,"terminating":false},"targetRef":{"kind":"Pod","name":"vllm-0","uid":"u0"}},
  {"addresses":["10.1.0.5"],"conditions":{"ready":false}},
  {"addresses":["10.1.0.6"],"conditions":{"ready":true,"terminating":true}},
  {"addresses":["10.1.0.7"],"conditions":{}}],
  "ports":[{"name":"metrics","port":9000,"protocol":"TCP"},{"name":"http","port":8000,"protocol":"TCP"}]},
 {"addressType":"IPv6","endpoints":[{"addresses":["fd00::1"]}],"ports":[{"name":"http","port":8000}]},
 {"addressType":"FQDN","endpoints":[{"addresses":["x.example"]}],"ports":[{"name":"http","port":8000}]}]}`

// apiServer is a fake of the one request that is made.
func apiServer(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(s.Close)
	return s
}

func account(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"token": "secret\n", "namespace": "team"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReplicas(t *testing.T) {
	s := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" || r.URL.Path != "/apis/discovery.k8s.io/v1/namespaces/team/endpointslices" ||
			r.URL.Query().Get("labelSelector") != "kubernetes.io/service-name=vllm" {
			t.Error("asked for", r.URL, r.Header)
		}
		if r.URL.Query().Get("continue") == "" {
			fmt.Fprintf(w, page, `,"continue":"more"`)
			return
		}
		fmt.Fprint(w, `{"items":[{"addressType":"IPv4","endpoints":[{"addresses":["10.1.0.9"]}],"ports":[{"name":"http","port":8000}]}]}`)
	})
	for port, want := range map[string]map[string]string{
		"http": {
			"10.1.0.4:8000#u0": "http://10.1.0.4:8000", "10.1.0.7:8000": "http://10.1.0.7:8000",
			"[fd00::1]:8000": "http://[fd00::1]:8000", "10.1.0.9:8000": "http://10.1.0.9:8000",
		},
		"9000": {"10.1.0.4:9000#u0": "http://10.1.0.4:9000", "10.1.0.7:9000": "http://10.1.0.7:9000"},
		"grpc": {},
	} {
		source, err := kubernetes.New(kubernetes.Options{Service: "vllm", Port: port, APIServer: s.URL, Account: account(t), Client: s.Client()})
		if err != nil {
			t.Fatal(err)
		}
		got, err := source.Replicas(t.Context())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("port %s: %v %s", port, err, diff)
		}
	}
}

// A pod of a service with two address families is one replica, the same one whatever the order of its slices.
func TestTwoFamilies(t *testing.T) {
	of := func(family, address string) string {
		return fmt.Sprintf(`{"addressType":%q,"endpoints":[{"addresses":[%q],"targetRef":{"uid":"u0"}}],"ports":[{"port":8000}]}`, family,
			address)
	}
	four, six := of("IPv4", "10.1.0.4"), of("IPv6", "fd00::4")
	for _, items := range []string{four + "," + six, six + "," + four} {
		s := apiServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"items":[%s]}`, items) })
		source, err := kubernetes.New(kubernetes.Options{Service: "vllm", APIServer: s.URL, Account: account(t), Client: s.Client()})
		if err != nil {
			t.Fatal(err)
		}
		got, err := source.Replicas(t.Context())
		if diff := cmp.Diff(map[string]string{"10.1.0.4:8000#u0": "http://10.1.0.4:8000"}, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for want, o := range map[string]kubernetes.Options{
		"Options.Service is empty":                      {},
		"Options.Namespace is empty":                    {Service: "s", Account: t.TempDir()},
		"KUBERNETES_SERVICE_HOST and _PORT are not set": {Service: "s", Namespace: "n"},
		"ca.crt": {Service: "s", Namespace: "n", APIServer: "https://x", Account: t.TempDir()},
	} {
		if _, err := kubernetes.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for want, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"status 403: you may not": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "you may not", http.StatusForbidden) },
		"unexpected end of JSON":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"items":[`) },
	} {
		s := apiServer(t, answer)
		source, err := kubernetes.New(kubernetes.Options{Service: "vllm", APIServer: s.URL, Account: account(t), Client: s.Client()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := source.Replicas(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Whatever an API server says, there is no panic, and replicas have addresses.
func FuzzList(f *testing.F) {
	f.Add(fmt.Sprintf(page, ""))
	f.Add(`{"items":[{"endpoints":[{"addresses":[]}],"ports":[{"port":null}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var head struct {
			Metadata struct{ Continue string }
		}
		if json.Unmarshal([]byte(text), &head) == nil && head.Metadata.Continue != "" {
			t.Skip() // for ever
		}
		client := &http.Client{Transport: says(text)}
		source, err := kubernetes.New(kubernetes.Options{
			Service: "s", Namespace: "n", APIServer: "http://api", Account: t.TempDir(),
			Client: client,
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := source.Replicas(t.Context())
		for name, url := range got {
			if err != nil || name == "" || !strings.HasPrefix(url, "http://") {
				t.Error(name, url, err)
			}
		}
	})
}

// says is a transport that always answers the same.
type says string

func (s says) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	_, _ = w.WriteString(string(s))
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

func Example() {
	source, err := kubernetes.New(kubernetes.Options{
		Service: "vllm", Namespace: "default", APIServer: "http://127.0.0.1:1",
		Client: http.DefaultClient,
	})
	if err != nil {
		panic(err)
	}
	_, err = source.Replicas(context.Background())
	fmt.Println("no API server here:", err != nil)
	// Output: no API server here: true
}
