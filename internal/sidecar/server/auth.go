package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

// keyring holds digests of keys: what is compared has one length, whatever was presented, and every key is compared, so
// that the time depends on no key.
type keyring struct {
	digests []digest
	holders []holder // of the same length
	places  map[digest]int
	anybody holder // asks where there are no keys
	finder  *finder
}

type digest = [sha256.Size]byte

// holder is who has a key.
type holder struct {
	tenant string
	quota  *quota
}

// newKeyring returns the keys of a configuration. Quotas go on as they are in the keyring before, which may be nil.
func newKeyring(c settings.Config, before *keyring) *keyring {
	k := &keyring{places: make(map[digest]int, len(c.Keys)), finder: newFinder(c.Keys)}
	for i, key := range c.Keys {
		d := sha256.Sum256([]byte(key.Key))
		q := newQuota()
		if before != nil {
			if old, ok := before.places[d]; ok {
				q = before.holders[old].quota
			}
		}
		q.set(c.Limits)
		k.digests, k.holders, k.places[d] = append(k.digests, d), append(k.holders, holder{key.Tenant, q}), i
	}
	k.anybody = holder{quota: newQuota()}
	if before != nil {
		k.anybody = before.anybody
	}
	k.anybody.quota.set(c.Limits)
	return k
}

// find returns who has a key.
func (k *keyring) find(presented string) (h holder, ok bool) {
	digest, found := sha256.Sum256([]byte(presented)), -1
	for i := range k.digests {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(digest[:], k.digests[i][:]), i, found)
	}
	if found < 0 {
		return holder{}, false
	}
	return k.holders[found], true
}

// authenticated lets requests pass that present a key, if keys are configured, and sets their tenant. Our keys are taken
// out of the request: they are secrets of this server, and what is behind the API forwards headers to engines.
func (s *Server) authenticated(next http.Handler) handle {
	return func(a *answer, r *http.Request) {
		keys := s.keys.Load()
		who := keys.anybody
		if len(keys.digests) > 0 {
			var ok bool
			if who, ok = s.admit(a, r, keys); !ok {
				return
			}
			if !keys.finder.withhold(r) {
				refuse(a, http.StatusBadRequest, "A key stands in the path, which is sent on")
				return
			}
		}
		name := who.tenant
		if header := s.tenantHeader; name != "" && header != "" && r.Header.Get(header) != "" {
			r.Header.Set(header, name) // what is behind may trust it, too
		} else if name == "" && header != "" {
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
		s.within(who.quota, a, func() { next.ServeHTTP(a, r.WithContext(tenant.With(ctx, name))) })
	}
}

// admit looks for a key in both places and answers 401 if there is none.
func (s *Server) admit(a *answer, r *http.Request, keys *keyring) (h holder, ok bool) {
	bearer, isBearer := bearerToken(r.Header.Get("Authorization"))
	if isBearer {
		if h, ok = keys.find(bearer); ok {
			r.Header.Del("Authorization")
			return h, true
		}
	}
	plain := r.Header.Get("X-Api-Key")
	if plain != "" {
		if h, ok = keys.find(plain); ok {
			r.Header.Del("X-Api-Key")
			return h, true
		}
	}
	if isBearer || plain != "" {
		s.count.keyWrong.Inc()
		a.Header().Set("WWW-Authenticate", `Bearer realm="ragpilot", error="invalid_token"`)
		refuse(a, http.StatusUnauthorized, "Invalid API key")
	} else {
		s.count.keyMissing.Inc()
		a.Header().Set("WWW-Authenticate", `Bearer realm="ragpilot"`)
		refuse(a, http.StatusUnauthorized, "Missing API key: send Authorization: Bearer KEY, or x-api-key: KEY")
	}
	return holder{}, false
}

func bearerToken(header string) (token string, ok bool) {
	scheme, token, ok := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	bearer := strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "Token") // as Mem0's client has it
	return token, ok && token != "" && bearer
}
