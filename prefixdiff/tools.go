package prefixdiff

import (
	"strconv"
	"strings"
)

// tools compares the definitions of tools.
func (c *pair) tools(d *difference, a, b *view) {
	d.certain = true
	if is(a, Function) && is(b, Function) && a.name == b.name {
		if a.loose == b.loose {
			c.members(d, a, b)
		} else {
			c.jsonText(d, a, b, ToolSet)
		}
		return
	}
	if !is(b, Function) {
		d.path = c.toolPath(d.part)
	}
	d.cause = ToolSet
	if is(a, Function) && is(b, Function) && c.hasTool(c.b, a.name) && c.hasTool(c.a, b.name) {
		d.cause = ToolOrder
	}
}

// toolPath is where the tool of the earlier prompt would stand in the later one.
func (c *pair) toolPath(part int) string {
	if part > 0 && c.b[part-1].kind == Function {
		path := c.p.Parts[part-1].Path
		i := strings.LastIndexByte(path, '[')
		if n, err := strconv.Atoi(strings.TrimSuffix(path[i+1:], "]")); err == nil {
			return path[:i+1] + strconv.Itoa(n+1) + "]"
		}
	}
	return "tools"
}

func (c *pair) hasTool(views []view, name uint64) bool {
	for i := range views {
		if views[i].kind == Function && views[i].name == name {
			return true
		}
	}
	return false
}

// jsonText compares JSON whose values differ. Without a better cause it is otherwise.
func (c *pair) jsonText(d *difference, a, b *view, otherwise Cause) {
	c.texts(d, a, b)
	part := &c.p.Parts[d.part]
	container, member := pathAt(part.Text, d.at)
	switch d.cause {
	case Clock, RandomID, Counter, UserName, WhiteSpace, Image:
	case MapOrder, DocumentOrder, ToolOrder:
		d.cause = otherwise
		if strings.Contains(member, ".") && c.valueAt(part.Text, d.at) { // a text in the schema, such as a description
			d.cause = MapOrder
		}
		d.path = part.Path + container
		return
	default:
		d.cause = otherwise
	}
	d.path = part.Path + member
}

// valueAt reports whether byte at is in the value of a member, and not in its name.
func (c *pair) valueAt(json string, at int) bool {
	container, member := pathAt(json, at)
	return container != member
}

// maxDepth is how deep JSON is looked at: deeper members count as a part of the one around them.
const maxDepth = 32

// maxMember is the length in bytes up to which a path has the name of a member.
const maxMember = 64

// level is an object or a list around a byte of JSON.
type level struct {
	list  bool
	index int
	name  string
	value bool // behind the colon
}

// step is the part of a path that leads from a level to what stands there.
func (l *level) step() string {
	switch {
	case l.list:
		return "[" + strconv.Itoa(l.index) + "]"
	case l.value:
		return "." + strings.ToValidUTF8(l.name[:min(len(l.name), maxMember)], "")
	}
	return ""
}

// pathAt returns the path of the object or list that byte at of some JSON stands in, and that of the value there. The two are
// equal if the byte belongs to no value, such as that of a member's name.
func pathAt(json string, at int) (container, member string) {
	var stack []level
	depth := 0
	for i := 0; i < len(json) && i <= at; i++ {
		top := (*level)(nil)
		if depth > 0 && depth <= maxDepth {
			top = &stack[depth-1]
		}
		switch ch := json[i]; ch {
		case '{', '[':
			if depth++; depth <= maxDepth {
				stack = append(stack[:depth-1], level{list: ch == '['})
			}
		case '}', ']':
			if i < at && depth > 1 {
				depth--
			}
		case ',':
			if top != nil && i < at {
				top.index++
				top.value = false
			}
		case ':':
			if top != nil {
				top.value = true
			}
		case '"':
			end := stringEnd(json, i)
			if top != nil && !top.list && !top.value {
				top.name = json[i+1 : max(i+1, end-1)]
			}
			i = end - 1
		}
	}
	if depth == 0 {
		return "", ""
	}
	stack = stack[:min(depth, maxDepth)]
	for i := range stack[:len(stack)-1] {
		container += stack[i].step()
	}
	if depth > maxDepth || at < len(json) && strings.IndexByte(",}]", json[at]) >= 0 {
		return container, container
	}
	return container, container + stack[len(stack)-1].step()
}

// stringEnd returns the byte behind the string that begins at i.
func stringEnd(json string, i int) int {
	for i++; i < len(json); i++ {
		switch json[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(json)
}
