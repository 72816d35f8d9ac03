package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/ragpilot/ragpilot/internal/tenant"
)

// keyring holds digests of keys: what is compared has one length, whatever was presented, and every key is compared, so
// that the time tells nothing about which key was how near.
type keyring struct {
	digests [][sha256.Size]byte
	tenants []string // of the same length
}

func newKeyring(keys []Key) *keyring {
	k := new(keyring)
	for _, key := range keys {
		k.digests = append(k.digests, sha256.Sum256([]byte(key.Key)))
		k.tenants = append(k.tenants, key.Tenant)
	}
	return k
}

// find returns the tenant of a key.
func (k *keyring) find(presented string) (name string, ok bool) {
	digest, found := sha256.Sum256([]byte(presented)), -1
	for i := range k.digests {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(digest[:], k.digests[i][:]), i, found)
	}
	if found < 0 {
		return "", false
	}
	return k.tenants[found], true
}

// authenticated lets requests pass that present a key, if keys are configured, and sets their tenant. The header that
// held the key is taken out: it is a secret of this server, and what is behind the API forwards headers to engines.
func (s *Server) authenticated(next http.Handler) handle {
	return func(a *answer, r *http.Request) {
		name := ""
		if keys := s.keys.Load(); len(keys.digests) > 0 {
			var ok bool
			if name, ok = s.admit(a, r, keys); !ok {
				return
			}
		}
		if header := s.tenantHeader; name == "" && header != "" {
			values := r.Header.Values(header)
			switch {
			case len(values) == 0:
			case len(values) > 1 || !tenant.Valid(values[0]):
				sendDetail(a, http.StatusBadRequest, "Header "+header+": "+tenant.Want)
				return
			default:
				name = values[0]
			}
		}
		ctx := r.Context()
		if rec, ok := ctx.Value(recordKey{}).(*record); ok {
			rec.tenant = name
		}
		next.ServeHTTP(a, r.WithContext(tenant.With(ctx, name)))
	}
}

// admit looks for a key in both places and answers 401 if there is none.
func (s *Server) admit(a *answer, r *http.Request, keys *keyring) (name string, ok bool) {
	const authorization, apiKey = "Authorization", "X-Api-Key"
	bearer, isBearer := bearerToken(r.Header.Get(authorization))
	if isBearer {
		if name, ok = keys.find(bearer); ok {
			r.Header.Del(authorization)
			return name, true
		}
	}
	plain := r.Header.Get(apiKey)
	if plain != "" {
		if name, ok = keys.find(plain); ok {
			r.Header.Del(apiKey)
			return name, true
		}
	}
	if isBearer || plain != "" {
		s.metrics.KeyWrong()
		a.Header().Set("WWW-Authenticate", `Bearer realm="ragpilot", error="invalid_token"`)
		sendDetail(a, http.StatusUnauthorized, "Invalid API key")
	} else {
		s.metrics.KeyMissing()
		a.Header().Set("WWW-Authenticate", `Bearer realm="ragpilot"`)
		sendDetail(a, http.StatusUnauthorized, "Missing API key: send Authorization: Bearer KEY, or x-api-key: KEY")
	}
	return "", false
}

func bearerToken(header string) (token string, ok bool) {
	scheme, token, ok := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	bearer := strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "Token") // as Mem0's client has it
	return token, ok && token != "" && bearer
}
