package proxy

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/paper"
	"github.com/ragpilot/ragpilot/internal/prompt/extract"
)

// Request headers. None is forwarded. SessionHeader names a conversation for statistics and the hold-out; it
// changes nothing about what is sent.
const (
	headerPrefix  = "X-Contextpilot-"
	headerEnabled = headerPrefix + "Enabled"
	headerMode    = headerPrefix + "Mode"
	headerTag     = headerPrefix + "Tag"
	headerSep     = headerPrefix + "Separator"
	headerScope   = headerPrefix + "Scope"
	headerAlpha   = headerPrefix + "Alpha"
	headerLinkage = headerPrefix + "Linkage"
	SessionHeader = headerPrefix + "Session"
)

// Response headers.
const (
	ResultHeader = "X-ContextPilot-Result"
	CloudHeader  = "X-ContextPilot-Cloud-Cache"
)

// control is what a client asks for in headers.
type control struct {
	off           bool
	extract       extract.Options
	system, tools bool // where documents are looked for
	session       string
	alpha         float64
	linkage       string
}

func readControl(h http.Header) control {
	c := control{
		extract: extract.Options{Mode: extract.ParseMode(h.Get(headerMode)), Tag: h.Get(headerTag), Separator: h.Get(headerSep)},
		system:  true, tools: true, session: SessionName(h.Get(SessionHeader)), linkage: h.Get(headerLinkage),
	}
	switch strings.ToLower(h.Get(headerEnabled)) {
	case "false", "0", "no":
		c.off = true
	}
	switch strings.ToLower(h.Get(headerScope)) {
	case "system":
		c.tools = false
	case "tool_results":
		c.system = false
	}
	if alpha, err := strconv.ParseFloat(h.Get(headerAlpha), 64); err == nil && alpha > 0 && alpha <= paper.MaxAlpha {
		c.alpha = alpha
	}
	return c
}

// SessionName is the name under which a session is kept: that which the client has given it, or the hash of one that is too long.
func SessionName(name string) string {
	if len(name) <= maxName {
		return name
	}
	h := xxh3.HashString128(name)
	return fmt.Sprintf("%016x%016x", h.Hi, h.Lo)
}

// key is different for controls that change what is sent.
func (c *control) key() string {
	e := &c.extract
	return strings.Join([]string{string(e.Mode), e.Tag, e.Separator, strconv.FormatBool(c.system), strconv.FormatBool(c.tools)}, "\x00")
}
