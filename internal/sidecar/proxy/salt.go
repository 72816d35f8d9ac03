package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"github.com/tidwall/gjson"
)

// salt is what keeps a tenant's prompts apart from all others in an engine's cache, and cannot be guessed: 64 hexadecimal
// digits. Empty: nobody asked for it, or there is no tenant. A provider keeps its customers apart itself.
func (p *Proxy) salt(tenant string) string {
	if p.opt.SaltKey == "" || tenant == "" || p.opt.Provider != nil {
		return ""
	}
	h := hmac.New(sha256.New, []byte(p.opt.SaltKey))
	h.Write([]byte(tenant))
	return hex.EncodeToString(h.Sum(nil))
}

// salted is a body with its tenant's salt, and with nothing else changed.
func (p *Proxy) salted(tenant string, raw []byte) []byte {
	salt := p.salt(tenant)
	if salt == "" {
		return raw
	}
	root := gjson.ParseBytes(raw)
	if !root.IsObject() {
		return raw
	}
	m := readIDs(root)
	return splice(raw, m.tell(raw, "", salt, nil))
}
