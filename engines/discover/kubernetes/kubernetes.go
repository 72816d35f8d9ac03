package kubernetes

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Options configures a [Source]. Zero values are those of a pod in the cluster.
type Options struct {
	// Service is the name of the service. Required.
	Service string
	// Namespace of the service; "": the pod's own.
	Namespace string
	// Port is the name or number of the port; "": the first of each slice.
	Port string
	// Scheme of the base URLs; "": http.
	Scheme string

	// APIServer is the API server's URL; "": from KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
	APIServer string
	// Account is the folder with the files token, ca.crt and namespace; "": where Kubernetes puts them.
	Account string
	// Client is used instead of one that trusts ca.crt.
	Client *http.Client
}

// serviceAccount is where Kubernetes puts a pod's credentials.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// maxAnswer bounds the bytes of a list.
const maxAnswer = 64 << 20

// Source lists the ready endpoints of one service. Safe for concurrent use.
type Source struct {
	opt    Options
	url    string
	client *http.Client
}

// New returns a Source, or says what is missing.
func New(o Options) (*Source, error) {
	if o.Service == "" {
		return nil, errors.New("kubernetes: Options.Service is empty")
	}
	o.Account, o.Scheme = cmp.Or(o.Account, serviceAccount), cmp.Or(o.Scheme, "http")
	if o.Namespace == "" {
		text, err := os.ReadFile(filepath.Join(o.Account, "namespace"))
		if err != nil {
			return nil, fmt.Errorf("kubernetes: Options.Namespace is empty, and not to be found: %w", err)
		}
		o.Namespace = strings.TrimSpace(string(text))
	}
	if o.APIServer == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil, errors.New("kubernetes: Options.APIServer is empty and KUBERNETES_SERVICE_HOST and _PORT are not set: not in a cluster?")
		}
		o.APIServer = "https://" + net.JoinHostPort(host, port)
	}
	s := &Source{opt: o, client: o.Client}
	if s.client == nil {
		ca, err := os.ReadFile(filepath.Join(o.Account, "ca.crt"))
		if err != nil {
			return nil, fmt.Errorf("kubernetes: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("kubernetes: %s: no certificate", filepath.Join(o.Account, "ca.crt"))
		}
		s.client = &http.Client{
			Timeout:   30 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, IdleConnTimeout: time.Minute},
		}
	}
	s.url = fmt.Sprintf("%s/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices?labelSelector=%s",
		strings.TrimSuffix(o.APIServer, "/"), url.PathEscape(o.Namespace), url.QueryEscape("kubernetes.io/service-name="+o.Service))
	return s, nil
}

// list is what is read of an EndpointSliceList (discovery.k8s.io/v1).
type list struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []slice `json:"items"`
}

type slice struct {
	AddressType string     `json:"addressType"`
	Endpoints   []endpoint `json:"endpoints"`
	Ports       []port     `json:"ports"`
}

type endpoint struct {
	Addresses  []string `json:"addresses"`
	Conditions struct {
		Ready       *bool `json:"ready"`
		Terminating *bool `json:"terminating"`
	} `json:"conditions"`
	TargetRef *struct {
		UID string `json:"uid"`
	} `json:"targetRef"`
}

type port struct {
	Name *string `json:"name"`
	Port *int    `json:"port"`
}

// Replicas implements discover.Source. Replicas are named by address, port and the pod's UID, so that a pod which gets
// the address of another is another replica, and one of a service with two address families is one. Endpoints that are
// not ready, or are ending, are left out.
func (s *Source) Replicas(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	pods := map[string]pod{}
	for next := ""; ; {
		page, err := s.page(ctx, next)
		if err != nil {
			return nil, err
		}
		for _, sl := range page.Items {
			s.read(&sl, out, pods)
		}
		if next = page.Metadata.Continue; next == "" {
			return out, nil
		}
	}
}

// pod is where a pod answers. One of a service with two address families is in a slice of each.
type pod struct{ name, host, family string }

// before reports which of two places of a pod stands for it: the same one whatever the order in which they are listed.
func (p pod) before(q pod) bool {
	return cmp.Or(strings.Compare(p.family, q.family), strings.Compare(p.host, q.host)) < 0 // IPv4, IPv6
}

func (s *Source) read(sl *slice, out map[string]string, pods map[string]pod) {
	number, ok := s.port(sl.Ports)
	if !ok || sl.AddressType == "FQDN" {
		return
	}
	for _, e := range sl.Endpoints {
		// No condition means ready, says the API.
		if len(e.Addresses) == 0 || e.Conditions.Ready != nil && !*e.Conditions.Ready ||
			e.Conditions.Terminating != nil && *e.Conditions.Terminating {
			continue
		}
		host := net.JoinHostPort(e.Addresses[0], strconv.Itoa(number)) // the others are the same endpoint
		name := host
		if e.TargetRef != nil && e.TargetRef.UID != "" {
			name += "#" + e.TargetRef.UID
			found := pod{name, host, sl.AddressType}
			if known, ok := pods[e.TargetRef.UID]; ok {
				if !found.before(known) {
					continue
				}
				delete(out, known.name)
			}
			pods[e.TargetRef.UID] = found
		}
		out[name] = s.opt.Scheme + "://" + host
	}
}

// port returns the number of the port that is asked for.
func (s *Source) port(ports []port) (number int, ok bool) {
	for _, p := range ports {
		if p.Port == nil {
			continue
		}
		if s.opt.Port == "" || p.Name != nil && *p.Name == s.opt.Port || strconv.Itoa(*p.Port) == s.opt.Port {
			return *p.Port, true
		}
	}
	return 0, false
}

func (s *Source) page(ctx context.Context, next string) (list, error) {
	address := s.url
	if next != "" {
		address += "&continue=" + url.QueryEscape(next)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return list{}, fmt.Errorf("kubernetes: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	// The token is renewed on disk.
	if token, err := os.ReadFile(filepath.Join(s.opt.Account, "token")); err == nil {
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return list{}, fmt.Errorf("kubernetes: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return list{}, fmt.Errorf("kubernetes: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return list{}, fmt.Errorf("kubernetes: list endpointslices of service %s in %s: status %d: %.200s", s.opt.Service, s.opt.Namespace,
			resp.StatusCode, text)
	}
	var out list
	if err := json.Unmarshal(text, &out); err != nil {
		return list{}, fmt.Errorf("kubernetes: endpointslices: %w", err)
	}
	return out, nil
}
