package prefixdiff

import (
	"strings"

	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// pair is an earlier prompt beside a later one.
type pair struct {
	splitter
	number uint32
	a      []view // the earlier one
	text   func(i int) string
	b      []view
	p      *Prompt // the later one
	toks   []int32 // of its parts; -1: not counted yet
	lcp    int     // tokens of the common prefix
}

// tokens returns those of part i of the later prompt.
func (c *pair) tokens(i int) int {
	if c.toks[i] < 0 {
		c.toks[i] = int32(c.p.Parts[i].tokens())
	}
	return int(c.toks[i])
}

// common returns the tokens in front of the first difference.
func (c *pair) common() int {
	i, n := c.part(), 0
	for j := range i {
		n += c.tokens(j)
	}
	if i == len(c.a) || i == len(c.b) || c.a[i].kind != c.b[i].kind || c.b[i].kind == Media || c.b[i].kind == Setting {
		return n
	}
	text := c.p.Parts[i].Text
	if c.text != nil {
		return n + whole(text, sameBytes(c.text(i), text))
	}
	c.describe(i)
	_, at := c.split(c.p.Parts[i].worded(), nil)
	return n + whole(text, int(at[sameWords(c.a[i].words, c.b[i].words)]))
}

func sameBytes(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// difference is where two prompts part.
type difference struct {
	part     int // of the later prompt; len: it has no more
	at       int // the byte in the part
	cause    Cause
	path     string
	common   int // tokens in front of the difference
	recurs   int // tokens behind it that the earlier prompt has, too
	coverage float64
	certain  bool // the cause is sure, however little recurs
	blank    bool // white space alone differs
	moved    bool // a message is gone, or new
}

// part returns the first part that is not equal.
func (c *pair) part() int {
	n := min(len(c.a), len(c.b))
	for i := range n {
		if !equal(&c.a[i], &c.b[i]) {
			return i
		}
	}
	return n
}

func equal(a, b *view) bool {
	return a.hash == b.hash && a.kind == b.kind && a.role == b.role && a.turn == b.turn && a.name == b.name
}

// describeAt makes sure that part i of both prompts has words.
func (c *pair) describe(i int) {
	if i < len(c.b) {
		c.splitter.describe(&c.b[i], &c.p.Parts[i])
	}
	if i < len(c.a) {
		c.describeA(i)
	}
}

// describeA makes sure that part i of the earlier prompt has words. Without texts it had them from the beginning.
func (c *pair) describeA(i int) {
	if v := &c.a[i]; v.words == nil && c.text != nil {
		c.splitter.describe(v, &Part{Kind: v.kind, Role: v.role, Turn: int(v.turn), Text: c.text(i)})
	}
}

// compare finds where the prompts part and why. It returns false if one is the beginning of the other.
func (c *pair) compare() (d difference, ok bool) {
	i := c.part()
	d.part = i
	for j := range i {
		d.common += c.tokens(j)
	}
	if i == len(c.a) || i == len(c.b) {
		if !c.frontEnds(i) {
			return d, false
		}
	}
	c.describe(i)
	if c.continues(i) {
		return d, false
	}
	c.why(&d)
	if d.part < len(c.b) && d.at > 0 {
		d.common += whole(c.p.Parts[d.part].Text, d.at)
	}
	c.recurring(&d)
	return d, true
}

// continues reports whether the later prompt goes on where the earlier one ends, in the middle of a text.
func (c *pair) continues(i int) bool {
	if i != len(c.a)-1 || i >= len(c.b) {
		return false
	}
	a, b := &c.a[i], &c.b[i]
	return a.kind == Text && b.kind == Text && a.turn == b.turn && a.role == b.role && a.role != System &&
		sameWords(a.words, b.words) == len(a.words)
}

// frontEnds reports whether one of the prompts has no message behind its front: a tool may be missing there.
func (c *pair) frontEnds(i int) bool {
	return i < len(c.a) && c.a[i].turn == Front || i < len(c.b) && c.b[i].turn == Front
}

// whole counts the tokens of text that end in front of byte at.
func whole(text string, at int) int {
	n := 0
	for from, piece := range tokens.Pieces(text) {
		if from+len(piece) > at {
			break
		}
		n++
	}
	return n
}

// why names the cause of the difference at part d.part, and its place in the part.
func (c *pair) why(d *difference) {
	var a, b *view
	if d.part < len(c.a) {
		a = &c.a[d.part]
	}
	if d.part < len(c.b) {
		b = &c.b[d.part]
		d.path = c.p.Parts[d.part].Path
	}
	switch {
	case is(a, Setting) || is(b, Setting):
		c.setting(d, a, b)
	case is(a, Schema) || is(b, Schema):
		c.schema(d, a, b)
	case is(a, Function) || is(b, Function):
		c.tools(d, a, b)
	case a == nil || b == nil:
		d.cause = Other
	case c.swapped(d):
		d.cause, d.certain = DocumentOrder, true
	case c.moved(d):
		d.cause, d.moved = EditedHistory, true
		d.path = messagePath(d.path)
	case a.kind == Media || b.kind == Media:
		d.cause, d.certain = Image, true
	case a.kind != b.kind || a.role != b.role || a.turn != b.turn:
		d.cause, d.moved = c.edited(d), true
		d.path = messagePath(d.path)
	case b.kind == Ident:
		d.cause, d.certain = RandomID, true
	case b.kind == Name:
		d.cause = EditedHistory
		if b.role == User || b.role == System {
			d.cause, d.certain = UserName, true
		}
	case b.kind == Opaque:
		d.cause = c.edited(d)
	case b.kind == Arguments && a.loose == b.loose:
		c.members(d, a, b)
	default:
		c.texts(d, a, b)
	}
}

func is(v *view, k Kind) bool { return v != nil && v.kind == k }

// edited is the cause of a difference without a better one: of the instructions, or of what was said.
func (c *pair) edited(d *difference) Cause {
	b, part := &c.b[d.part], &c.p.Parts[d.part]
	switch {
	case b.role == System,
		c.single() && len(spoken(part.Text)) < 2,
		part.At > 0 && b.role == User && c.filledIn(d.part): // instructions in the first message of a chat template
		return Template
	}
	return EditedHistory
}

// single reports whether the prompt has one message that is not of the system: it is a template that was filled in.
func (c *pair) single() bool {
	turn, n := int32(-2), 0
	for i := range c.b {
		if v := &c.b[i]; v.role != System && v.turn != turn {
			turn = v.turn
			n++
		}
	}
	return n <= 1
}

// messagePath cuts a path behind its first index: messages[3].content is about messages[3].
func messagePath(path string) string {
	for _, list := range [...]string{"messages[", "input[", "contents["} {
		if i := strings.Index(path, list); i >= 0 {
			if j := strings.IndexByte(path[i:], ']'); j > 0 {
				return path[:i+j+1]
			}
		}
	}
	return path
}

// setting names the setting that is another one.
func (c *pair) setting(d *difference, a, b *view) {
	d.certain = true
	name := ""
	if is(b, Setting) && (!is(a, Setting) || a.name == b.name || !c.has(c.a, b.name)) {
		name = c.p.Parts[d.part].Path
	} else if a != nil {
		for _, known := range settingNames {
			if c.hash(known) == a.name {
				name = known
			}
		}
	}
	d.path = name
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch last {
	case "model", "lora_path":
		d.cause = Model
	case "cache_salt", "extra_key", "prompt_cache_key":
		d.cause = Salt
	default:
		d.cause = Other
	}
}

// settingNames are the paths of settings, to name one that is gone.
var settingNames = []string{
	"model", "lora_path", "cache_salt", "extra_key", "prompt_cache_key", "reasoning_effort", "verbosity", "speed", "chat_template",
	"chat_template_kwargs", "tool_choice", "thinking", "reasoning.effort", "text.verbosity",
}

// has reports whether views have one of that name.
func (c *pair) has(views []view, name uint64) bool {
	for i := range views {
		if views[i].kind == Setting && views[i].name == name {
			return true
		}
	}
	return false
}

// schema compares the schemas of structured answers.
func (c *pair) schema(d *difference, a, b *view) {
	d.certain = true
	d.cause = Other
	if !is(a, Schema) || !is(b, Schema) {
		return
	}
	if a.loose == b.loose {
		c.members(d, a, b)
		return
	}
	c.jsonText(d, a, b, Other)
}

// members is for JSON that is equal but for the order of its members.
func (c *pair) members(d *difference, a, b *view) {
	d.cause, d.certain = MapOrder, true
	part := &c.p.Parts[d.part]
	at := c.first(a, b)
	d.at = at
	if part.Text == "" || part.Text[0] != '{' && part.Text[0] != '[' {
		return
	}
	container, _ := pathAt(part.Text, at)
	if part.Kind == Arguments && !strings.HasSuffix(part.Path, ".input") && !strings.HasSuffix(part.Path, ".args") {
		return // a string in the request
	}
	d.path += container
}

// first returns the byte of the later part at which its words and the earlier one's differ.
func (c *pair) first(a, b *view) int {
	text := c.p.Parts[c.index(b)].worded()
	n := sameWords(a.words, b.words)
	_, at := c.split(text, nil)
	return int(at[min(n, len(at)-1)])
}

func (c *pair) index(b *view) int {
	for i := range c.b {
		if &c.b[i] == b {
			return i
		}
	}
	return 0
}

// sameWords counts the words that two texts have in common at the front.
func sameWords(a, b []word) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
