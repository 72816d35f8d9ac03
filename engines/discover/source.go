package discover

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// Source lists the replicas.
type Source interface {
	// Replicas returns base URLs by name. A name must stay with the same replica. It is called by one goroutine at a time. After an
	// error the replicas that were known stay.
	Replicas(ctx context.Context) (map[string]string, error)
}

// Static is a Source of replicas that never change, base URLs by name.
type Static map[string]string

// Replicas returns the map, or which of its URLs is none.
func (s Static) Replicas(context.Context) (map[string]string, error) {
	out := make(map[string]string, len(s))
	for name, base := range s {
		if err := check(name, base); err != nil {
			return nil, err
		}
		out[name] = base
	}
	return out, nil
}

// File is a Source that reads a file at each call: a replica a line, its URL or "name URL". Empty lines and those that begin
// with # do not count. It is read anew each time, so that files which are replaced by renaming, such as mounted config maps, do not
// matter; write them that way, since one that is read half-written is taken as it is.
type File string

// Replicas reads the file. A line that is wrong is an error which names it.
func (f File) Replicas(context.Context) (map[string]string, error) {
	r, err := os.Open(string(f))
	if err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	defer r.Close()
	out := map[string]string{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		name, base := fields[0], fields[len(fields)-1]
		if len(fields) > 2 {
			return nil, fmt.Errorf("discover: %s:%d: want \"URL\" or \"name URL\"", string(f), n)
		}
		if err := check(name, base); err != nil {
			return nil, fmt.Errorf("discover: %s:%d: %w", string(f), n, err)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("discover: %s:%d: replica %q stands there twice", string(f), n, name)
		}
		out[name] = base
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("discover: %s: %w", string(f), err)
	}
	return out, nil
}

// DNS is a Source that looks up the addresses of a host, such as a headless service. Replicas are named by their addresses.
type DNS struct {
	Host string
	Port int
	// Scheme of the base URLs; "": http.
	Scheme string
	// Resolver is asked; nil: net.DefaultResolver.
	Resolver *net.Resolver
}

// Replicas looks the host up.
func (d DNS) Replicas(ctx context.Context) (map[string]string, error) {
	if d.Host == "" || d.Port < 1 || d.Port > 65535 {
		return nil, fmt.Errorf("discover: DNS: host %q, port %d: want both", d.Host, d.Port)
	}
	addresses, err := cmp.Or(d.Resolver, net.DefaultResolver).LookupNetIP(ctx, "ip", d.Host)
	if err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	out := make(map[string]string, len(addresses))
	for _, a := range addresses {
		host := netip.AddrPortFrom(a.Unmap(), uint16(d.Port)).String()
		out[host] = cmp.Or(d.Scheme, "http") + "://" + host
	}
	return out, nil
}

// SRV is a Source that looks up service records, which name hosts and ports.
type SRV struct {
	// Name is looked up as it is, for example _http._tcp.vllm.default.svc.cluster.local.
	Name string
	// Scheme of the base URLs; "": http.
	Scheme string
	// Resolver is asked; nil: net.DefaultResolver.
	Resolver *net.Resolver
}

// Replicas looks the records up.
func (s SRV) Replicas(ctx context.Context) (map[string]string, error) {
	if s.Name == "" {
		return nil, errors.New("discover: SRV: the name is empty")
	}
	_, records, err := cmp.Or(s.Resolver, net.DefaultResolver).LookupSRV(ctx, "", "", s.Name)
	if err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	out := make(map[string]string, len(records))
	for _, rec := range records {
		host := net.JoinHostPort(strings.TrimSuffix(rec.Target, "."), strconv.Itoa(int(rec.Port)))
		out[host] = cmp.Or(s.Scheme, "http") + "://" + host
	}
	return out, nil
}

// check returns an error if a replica's name or base URL is wrong.
func check(name, base string) error {
	u, err := url.Parse(base)
	switch {
	case name == "":
		return fmt.Errorf("replica %s has no name", base)
	case err != nil:
		return fmt.Errorf("replica %q: %w", name, err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("replica %q: %q: want a URL with http or https and a host", name, base)
	}
	return nil
}
