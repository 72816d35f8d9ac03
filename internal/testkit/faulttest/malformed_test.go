//go:build linux

package faulttest_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// answersAll is an upstream that takes whatever comes.
var answersAll = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"choices":[]}`)
})

// messageOf is a chat whose one content is the JSON text given.
func messageOf(content string) string {
	return `{"messages":[{"role":"user","content":` + content + `}]}`
}

// TestMalformedJSON: what is no JSON is refused, what is odd JSON passes byte for byte, and neither takes long.
func TestMalformedJSON(t *testing.T) {
	faults(t)
	e := newScripted(t, answersAll)
	const most = 300 // MiB
	s := serveIn(t, tidy(most/2), e.URL, "")
	before := s.atRest(t, e)
	const refused, passes = http.StatusBadRequest, http.StatusOK
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"nothing":              {"", refused},
		"blank":                {" \n\t", refused},
		"a zero byte":          {"\x00", refused},
		"cut in a string":      {`{"messages":[{"role":"us`, refused},
		"cut in a list":        {`{"messages":[{"role":"user","content":"x"}`, refused},
		"cut in an escape":     {`{"messages":[{"role":"user","content":"\u12`, refused},
		"two values":           {messageOf(`"x"`) + messageOf(`"x"`), refused},
		"a comma too many":     {`{"messages":[{"role":"user","content":"x"},]}`, refused},
		"a comment":            {`{"messages":[]/* none */}`, refused},
		"NaN":                  {`{"messages":[],"temperature":NaN}`, refused},
		"Infinity":             {`{"messages":[],"temperature":-Infinity}`, refused},
		"a leading zero":       {`{"messages":[],"seed":01}`, refused},
		"single quotes":        {`{'messages':[]}`, refused},
		"a control character":  {messageOf("\"a\nb\""), refused},
		"a byte order mark":    {"\xef\xbb\xbf" + messageOf(`"x"`), refused},
		"UTF-16":               {"{\x00\"\x00", refused},
		"100,000 lists":        {messageOf(strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)), refused},
		"100,000 objects":      {strings.Repeat(`{"messages":`, 100_000) + "1" + strings.Repeat("}", 100_000), refused},
		"16 MiB of [":          {strings.Repeat("[", 16*mib), refused},
		"16 MiB of {\"a\":":    {strings.Repeat(`{"a":`, 16*mib/5), refused},
		"16 MiB of quotes":     {strings.Repeat(`"`, 16*mib+1), refused},
		"9,000 lists":          {messageOf(strings.Repeat("[", 9000) + strings.Repeat("]", 9000)), passes},
		"null":                 {"null", passes},
		"a number":             {"1", passes},
		"a list":               {`[{"role":"user"}]`, passes},
		"messages are no list": {`{"messages":{"role":"user"}}`, passes},
		"messages are numbers": {`{"messages":[1,null,"x",[[]],true]}`, passes},
		"contents of all kinds": {`{"messages":[{"role":1,"content":{}},{"role":"tool","content":[1,{"type":"text"},{"text":5,` +
			`"type":"text"}]},{"content":null}]}`, passes},
		"calls of all kinds": {`{"messages":[{"role":"assistant","tool_calls":5},{"role":"assistant","tool_calls":[null,` +
			`{"id":7}]},{"role":"tool","tool_call_id":[],"content":"x"}]}`, passes},
		"invalid UTF-8":           {messageOf("\"a\xff\xfe\xc0\x80\xed\xa0\x80z\""), passes},
		"invalid UTF-8 in a name": {"{\"messages\":[],\"\xff\":1}", passes},
		"lone surrogates":         {messageOf(`"\ud800 \udc00 \ud83d\u0041"`), passes},
		"zero characters":         {messageOf(`"a\u0000b"`), passes},
		"messages twice":          {`{"messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b"}]}`, passes},
		"content twice":           {`{"messages":[{"role":"user","content":"a","content":"b","role":"tool"}]}`, passes},
		"messages by an escape":   {`{"messages":[],"\u006dessages":[{"role":"user","content":"b"}]}`, passes},
		"a huge number":           {`{"messages":[],"seed":1e999999,"max_tokens":` + strings.Repeat("9", 100_000) + `}`, passes},
		"a long name":             {`{"messages":[],"` + strings.Repeat("n", mib) + `":1}`, passes},
		"white space":             {strings.Repeat(" ", mib) + messageOf(`"x"`) + strings.Repeat("\n", mib), passes},
		"200,000 messages":        {`{"messages":[` + strings.Repeat("{},", 200_000) + `{}]}`, passes},
		"100,000 members":         {`{"messages":[]` + numbered(100_000, `,"%d":%d`) + `}`, passes},
		"a million calls":         {`{"messages":[{"role":"assistant","tool_calls":[` + strings.Repeat("0,", mib) + `0]}]}`, passes},
		"100,000 parts":           {messageOf("[" + strings.Repeat(`{"type":"text","text":""},`, 100_000) + "{}]"), passes},
		"100,000 open tags": {
			`{"messages":[{"role":"system","content":"` + strings.Repeat("<documents><document>", 100_000) + `"}]}`,
			passes,
		},
		"200,000 system documents": {`{"messages":[{"role":"system","content":"` + numbered(200_000, `[%d] line %d\n`) + `"}]}`, passes},
		"200,000 tool documents": {`{"messages":[{"role":"tool","tool_call_id":"1","content":"` + numbered(200_000, `[%d] line %d\n`) +
			`"}]}`, passes},
	} {
		t.Run(name, func(t *testing.T) {
			for path, member := range map[string]string{
				chatPath: "messages", "/v1/messages": "messages", "/v1/responses": "input",
				plainPath: "prompt",
			} {
				if len(c.body) > mib && path != chatPath {
					continue
				}
				body := strings.Replace(c.body, `"messages"`, `"`+member+`"`, 1)
				s.quick(t, newRequest(path, []byte(body)), c.want, len(body) > mib)
			}
		})
	}
	t.Run("a member again and again", func(t *testing.T) {
		for _, name := range []string{"rid", "request_id", "system_prompt"} {
			body := `{"prompt":"x"` + strings.Repeat(`,"`+name+`":1`, 100_000) + `}`
			s.quick(t, newRequest(plainPath, []byte(body)), http.StatusOK, true)
		}
	})
	t.Run("to the index", func(t *testing.T) {
		for _, path := range []string{"/reorder", "/build", "/schedule", "/deduplicate", "/evict", "/search", "/insert"} {
			for _, body := range []string{
				"", "null", "[", `{"contexts":[[1e999]]}`, `{"contexts":[["\ud800",null,{}]]}`,
				`{"contexts":[[1],[1]],"contexts":5}`, strings.Repeat("[", 16*mib),
				`{"contexts":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, "{\"contexts\":[[\"\xff\"]]}",
				`{"request_ids":[null,1,"x"]}`,
			} {
				if r := s.send(t, newRequest(path, []byte(body))); r.code == 0 || r.code >= 500 || r.err != nil {
					t.Errorf("%.40q: %v", body, r)
				}
			}
		}
	})
	s.recovered(t, e, before)
	s.ledger.accountPaths(t, e.arrivals(t), chatPath)
	s.ledger.accountPaths(t, e.arrivals(t), "/v1/messages")
	s.ledger.accountPaths(t, e.arrivals(t), "/v1/responses")
	if peak := s.peakMiB(t); peak > most {
		t.Errorf("%d MiB of memory", peak)
	} else {
		t.Logf("%d MiB of memory", peak)
	}
}

// TestManyDocuments: as many documents as are ordered at all make no answer that clients could not take: many refuse
// headers of more than 8 KiB.
func TestManyDocuments(t *testing.T) {
	faults(t)
	e := newScripted(t, answersAll)
	s := serve(t, e.URL, "")
	before := s.atRest(t, e)
	numbers := make([]string, 1500)
	for i := range numbers {
		numbers[i] = fmt.Sprintf(`<document>\nText %d\n</document>\n`, i)
	}
	for i := range 3 {
		slices.Reverse(numbers[i*7:])
		docs := `<documents>\n` + strings.Join(numbers, "") + `</documents>`
		q := newRequest(
			chatPath,
			fmt.Appendf(
				nil,
				`{"model":"","messages":[{"role":"system","content":%q},{"role":"user","content":"Question %d?"},{"role":"tool",`+
					`"tool_call_id":"1","content":%q}],"stream":false,"max_tokens":0,"seed":0}`,
				docs,
				i,
				docs,
			),
		)
		q.body = bytes.ReplaceAll(q.body, []byte(`\\n`), []byte(`\n`))
		r := s.send(t, q)
		var size bytes.Buffer
		_ = r.header.Write(&size) // cannot fail
		if r.code != http.StatusOK || r.err != nil || size.Len() > 8<<10 {
			t.Errorf("%d bytes of headers: %v", size.Len(), r)
		}
		t.Logf("%d bytes of headers", size.Len())
	}
	s.recovered(t, e, before)
	changed := 0
	for _, a := range e.arrivals(t) {
		changed += bytes.Count(a.Body, []byte("identical"))
	}
	if s.ledger.account(t, e.arrivals(t), true); changed == 0 {
		t.Error("nothing was changed: this test shows nothing")
	}
}

// numbered repeats a form with numbers that count from one.
func numbered(n int, form string) string {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, form, i+1, i)
	}
	return b.String()
}

// quick wants a status in a time that grows no faster than the body.
func (s *sidecar) quick(t *testing.T, q request, want int, large bool) {
	t.Helper()
	limit := 20 * time.Second // the machine may be busy
	if large {
		limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	r := s.sendWatched(ctx, q, func([]byte) {})
	if took := time.Since(began); r.code != want || r.err != nil || took > limit {
		t.Errorf("after %v, want %d: %v", took, want, r)
	}
}
