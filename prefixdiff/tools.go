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

// pathAt returns the path of the object or list that byte at of some JSON stands in, and that of the value there. The two are
// equal if the byte belongs to no value, such as that of a member's name.
func pathAt(json string, at int) (container, member string) {
	type level struct {
		path  string
		list  bool
		index int
		name  string
		value bool // behind the colon
	}
	var stack []level
	full := func(l *level) string {
		switch {
		case l.list:
			return l.path + "[" + strconv.Itoa(l.index) + "]"
		case l.value:
			return l.path + "." + l.name
		}
		return l.path
	}
	for i := 0; i < len(json) && i <= at; i++ {
		switch ch := json[i]; ch {
		case '{', '[':
			path := ""
			if n := len(stack); n > 0 {
				path = full(&stack[n-1])
			}
			stack = append(stack, level{path: path, list: ch == '['})
		case '}', ']':
			if i < at && len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
		case ',':
			if n := len(stack); n > 0 && i < at {
				stack[n-1].index++
				stack[n-1].value = false
			}
		case ':':
			if n := len(stack); n > 0 {
				stack[n-1].value = true
			}
		case '"':
			end := stringEnd(json, i)
			if n := len(stack); n > 0 && !stack[n-1].list && !stack[n-1].value {
				stack[n-1].name = json[i+1 : max(i+1, end-1)]
			}
			i = end - 1
		}
	}
	if len(stack) == 0 {
		return "", ""
	}
	top := &stack[len(stack)-1]
	if at < len(json) && strings.IndexByte(",}]", json[at]) >= 0 {
		return top.path, top.path
	}
	return top.path, full(top)
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
