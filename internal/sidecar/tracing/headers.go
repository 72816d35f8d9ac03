package tracing

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// ParseHeaders reads headers as OTEL_EXPORTER_OTLP_HEADERS has them: name=value,name=value, with values in percent
// encoding. Errors name the place of what is wrong and not its text, which may be a secret.
func ParseHeaders(text string) (map[string]string, error) {
	headers := map[string]string{}
	for i, item := range strings.Split(text, ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		name, value, ok := strings.Cut(item, "=")
		name = strings.TrimSpace(name)
		switch {
		case !ok:
			return nil, fmt.Errorf("header %d: want name=value", i+1)
		case !httpguts.ValidHeaderFieldName(name):
			return nil, fmt.Errorf("header %d: its name is not valid", i+1)
		}
		value, err := url.PathUnescape(value)
		if err != nil {
			return nil, fmt.Errorf("header %d: its value is not valid percent encoding", i+1)
		}
		value = strings.TrimSpace(value)
		if !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("header %d: its value has characters that no header can carry", i+1)
		}
		headers[name] = value
	}
	return headers, nil
}

// withPath adds the usual path to an endpoint without one.
func withPath(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", errors.New("is not a URL") // the text of err may show a password
	}
	if u.Path == "" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}
