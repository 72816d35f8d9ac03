package memoryapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/memoryapi"
	"github.com/ragpilot/ragpilot/memory"
)

// newAPI returns a handler in which each tenant, named by a header, has a store of its own.
func newAPI(t testing.TB) http.Handler {
	t.Helper()
	stores := map[string]memory.Store{}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tenant := range []string{"", "other"} {
		n := 0
		s, err := memory.New(memory.NewInMemory(), memory.Config{
			Embedder: memory.Lexical,
			Now:      func() time.Time { now = now.Add(time.Second); return now },
			NewID:    func() string { n++; return "id-" + string(rune('a'+n-1)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		stores[tenant] = s
	}
	api := memoryapi.New(memoryapi.Options{
		Store: func(_ context.Context, tenant string) (memory.Store, func(), error) {
			if s, ok := stores[tenant]; ok {
				return s, func() {}, nil
			}
			return nil, nil, errors.New("the disk is full of secrets")
		},
		Tenant: func(r *http.Request) string { return r.Header.Get("Tenant") }, Extraction: "verbatim",
	})
	mux := http.NewServeMux()
	api.Hosted(mux, "")
	api.SelfHosted(mux, "")
	inner := http.NewServeMux()
	api.Hosted(inner, "/mem0")
	api.SelfHosted(inner, "/mem0")
	mux.Handle("/mem0/", inner)
	return mux
}

// ask sends a request, "METHOD /path body", and returns status and answer.
func ask(t testing.TB, h http.Handler, request string, header ...string) (int, string) {
	t.Helper()
	method, rest, _ := strings.Cut(request, " ")
	path, body, _ := strings.Cut(rest, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

var scores = regexp.MustCompile(`"score":0\.\d+`)

// The whole of what clients see, in one conversation; scores vary with the embedder.
func TestConversation(t *testing.T) {
	h := newAPI(t)
	const (
		bees = `{"id":"id-a","memory":"Ana keeps bees.","hash":"HASH","user_id":"ana","role":"user","metadata":{"topic":"life"},` +
			`"created_at":"2026-03-01T12:00:01Z","updated_at":"2026-03-01T12:00:01Z","expiration_date":"2999-01-01"`
		porto = `{"id":"id-c","memory":"Ana is in Porto.","hash":"HASH","user_id":"ana","agent_id":"guide","role":"assistant",` +
			`"metadata":null,"created_at":"2026-03-01T12:00:02Z","updated_at":"2026-03-01T12:00:02Z","expiration_date":null`
	)
	hash := regexp.MustCompile(`"hash":"[0-9a-f]{32}"`)
	for _, step := range []struct{ request, want string }{
		{"GET /v1/ping/", `{"org_id":"ragpilot","project_id":"default","status":"ok","user_email":null}`},
		{`POST /v3/memories/add/ {"messages":[{"role":"user","content":"Ana keeps bees."}],"user_id":"ana","infer":false,` +
			`"metadata":{"topic":"life"},"expiration_date":"2999-01-01"}`, `{"results":[{"event":"ADD","id":"id-a","memory":"Ana keeps bees."}]}`},
		{`POST /memories {"messages":{"role":"assistant","content":[{"type":"text","text":"Ana is in Porto."}]},"infer":false,` +
			`"filters":{"AND":[{"user_id":"ana"},{"agent_id":"guide"}]}}`, `{"results":[{"event":"ADD","id":"id-c","memory":"Ana is in Porto."}]}`},
		{`POST /v3/memories/add/ {"messages":"Ana keeps bees.","user_id":"ana"}`, `{"results":[]}`},
		{"GET /v1/memories/id-a/", bees + "}"},
		{`POST /v3/memories/ {"filters":{"user_id":"ana"}}`, `{"count":2,"next":null,"previous":null,"results":[` + porto + `},` + bees + `}]}`},
		{
			`POST /v3/memories/?page=2&page_size=1 {"filters":{"user_id":"ana"}}`,
			`{"count":2,"next":null,"previous":"/v3/memories/?page=1\u0026page_size=1","results":[` + bees + `}]}`,
		},
		{"GET /memories?user_id=ana&top_k=1", `{"results":[` + bees + `}]}`},
		{`POST /search {"query":"who keeps bees?","user_id":"ana","top_k":1}`, `{"results":[` + bees + `,"score":S}]}`},
		{`POST /v3/memories/search/ {"query":"who keeps bees?","filters":{"OR":[{"user_id":"ana","topic":"life"},{"agent_id":"guide",` +
			`"topic":"x"}]}}`, `{"results":[` + bees + `,"score":S}]}`},
		{
			`PUT /v1/memories/id-a/ {"text":"Ana sold her bees.","expiration_date":null}`,
			`{"id":"id-a","memory":"Ana sold her bees.","hash":"HASH","user_id":"ana","role":"user","metadata":{"topic":"life"},` +
				`"created_at":"2026-03-01T12:00:01Z","updated_at":"2026-03-01T12:00:10Z","expiration_date":null}`,
		},
		{"GET /v1/memories/id-a/history/", `[{"id":"id-b","memory_id":"id-a","old_memory":null,"new_memory":"Ana keeps bees.",` +
			`"event":"ADD","created_at":"2026-03-01T12:00:01Z","updated_at":"2026-03-01T12:00:01Z","is_deleted":false,"role":"user"},` +
			`{"id":"id-e","memory_id":"id-a","old_memory":"Ana keeps bees.","new_memory":"Ana sold her bees.","event":"UPDATE",` +
			`"created_at":"2026-03-01T12:00:10Z","updated_at":"2026-03-01T12:00:10Z","is_deleted":false,"role":"user"}]`},
		{"GET /v1/entities/", `{"count":2,"results":[{"id":"agent:guide","name":"guide","total_memories":1,"type":"agent"},` +
			`{"id":"user:ana","name":"ana","total_memories":2,"type":"user"}]}`},
		{
			`PUT /v1/batch/ {"memories":[{"memory_id":"id-a","metadata":{}},{"memory_id":"id-c","text":"Ana left Porto."}]}`,
			`{"message":"Successfully updated 2 memories"}`,
		},
		{"DELETE /memories/id-a", `{"message":"Memory deleted successfully!"}`},
		{`DELETE /v1/batch/ {"memories":[{"memory_id":"id-c"}]}`, `{"message":"Successfully deleted 1 memories"}`},
		{"DELETE /v1/memories/?user_id=ana", `{"message":"Memories deleted successfully!"}`},
		{"DELETE /v2/entities/user/ana/", `{"message":"Entity deleted successfully!"}`},
		{"GET /configure", `{"extraction":"verbatim","version":"v1.1"}`},
		{"POST /mem0/reset", `{"message":"All memories reset"}`},
		{`POST /mem0/v3/memories/ {"filters":{"user_id":"ana"}}`, `{"count":0,"next":null,"previous":null,"results":[]}`},
	} {
		code, got := ask(t, h, step.request)
		got = hash.ReplaceAllString(scores.ReplaceAllString(got, `"score":S`), `"hash":"HASH"`)
		if code != http.StatusOK || got != step.want {
			t.Errorf("%s: %d\n%s, want\n%s", step.request, code, got, step.want)
		}
	}
}

// Where the index has POST /search too, the members of a request decide which of the two answers.
func TestSharedSearch(t *testing.T) {
	store, err := memory.New(memory.NewInMemory(), memory.Config{Embedder: memory.Lexical})
	if err != nil {
		t.Fatal(err)
	}
	api := memoryapi.New(memoryapi.Options{
		Store: func(context.Context, string) (memory.Store, func(), error) { return store, func() {}, nil },
		Index: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = w.Write(append([]byte("index "), body...))
		}),
	})
	h := http.NewServeMux()
	for _, prefix := range []string{"", "/mem0"} {
		api.SelfHosted(h, prefix)
	}
	for request, want := range map[string]string{
		`POST /search {"context":[1,2],"update_access":true}`:            `200 index {"context":[1,2],"update_access":true}`,
		`POST /search {"context":null}`:                                  `200 index {"context":null}`,
		`POST /search {"query":"bees","user_id":"ana"}`:                  `200 {"results":[]}`,
		`POST /search {"query":"bees","user_id":"ana","context":"x"}`:    `200 {"results":[]}`,
		`POST /search {"query":"bees","Context":[1]}`:                    `400 {"detail":"no scope`,
		`POST /search {"user_id":"ana"}`:                                 `400 {"detail":"query is empty`,
		`POST /search {"context":[1,2`:                                   `400 {"detail":"Body`,
		`POST /search`:                                                   `400 {"detail":"query is empty`,
		`POST /mem0/search {"context":[1,2],"user_id":"ana"}`:            `400 {"detail":"query is empty`,
		`POST /mem0/search {"query":"bees","user_id":"ana","context":1}`: `200 {"results":[]}`,
	} {
		code, got := ask(t, h, request)
		if got = strconv.Itoa(code) + " " + got; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/search", strings.NewReader(`{"context":[1,2]}`))
	w := httptest.NewRecorder()
	http.MaxBytesHandler(h, 5).ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a long body: %d %s", w.Code, w.Body)
	}
}

func TestRefusals(t *testing.T) {
	h := newAPI(t)
	if code, _ := ask(t, h, `POST /memories {"messages":"a","user_id":"ana"}`); code != http.StatusOK {
		t.Fatal(code)
	}
	for request, want := range map[string]string{
		`POST /memories {"messages":"x"}`:                                                   "400 no scope",
		`POST /memories {"user_id":"ana"}`:                                                  "400 messages is empty",
		`POST /memories {"user_id":"ana","messages":3}`:                                     "400 Body",
		`POST /memories {`:                                                                  "400 Body",
		`POST /memories {"user_id":"ana","messages":"x","expiration_date":"1/2"}`:           `400 expiration_date \"1/2\"`,
		`POST /memories {"user_id":"ana","messages":"x","memory_type":"procedural_memory"}`: `400 memory_type`,
		`POST /search {"query":"x"}`:                                                        "400 no scope",
		`POST /search {"user_id":"ana"}`:                                                    "400 query is empty",
		`POST /search {"query":"x","user_id":"ana","top_k":-1}`:                             "400 top_k is -1",
		`POST /search {"query":"x","filters":{"OR":[{"user_id":"ana"},{"topic":"x"}]}}`:     "400 no scope",
		`POST /search {"query":"x","filters":{"user_id":{"near":1}}}`:                       "400 bad filter",
		`POST /v3/memories/?page=0 {"filters":{"user_id":"ana"}}`:                           `400 page \"0\"`,
		`GET /memories`:                            "400 no scope",
		`GET /memories?user_id=ana&top_k=x`:        `400 top_k \"x\"`,
		`GET /memories/none`:                       "404 no such memory",
		`PUT /memories/none {"text":"x"}`:          "404 no such memory",
		`PUT /memories/id-a {}`:                    "400 one of text",
		`PUT /memories/id-a {"text":" "}`:          "400 empty text",
		`PUT /memories/id-a {"expiration_date":7}`: "400 expiration_date",
		`DELETE /memories/none`:                    "404 no such memory",
		`DELETE /memories`:                         "400 no scope",
		`GET /memories/none/history`:               "404 no such memory",
		`PUT /v1/batch/ {"memories":[]}`:           "400 memories has 0",
		`PUT /v1/batch/ {"memories":[{"memory_id":"id-a","text":"b"},{"memory_id":"id-a"}]}`: "400 memories[1]: one of text",
		`DELETE /v1/batch/ {"memories":[{"memory_id":"none"}]}`:                              "404 memories[0], after 0 were deleted",
		`DELETE /v2/entities/app/x/`:                                                         "400 entities of type",
		`POST /configure {}`:                                                                 "501 Settings",
		`POST /generate-instructions {}`:                                                     "501 Instructions",
	} {
		code, got := ask(t, h, request)
		status, detail, _ := strings.Cut(want, " ")
		if strconv.Itoa(code) != status || !strings.Contains(got, detail) {
			t.Errorf("%s: %d %s, want %s", request, code, got, want)
		}
	}
	if _, got := ask(t, h, "GET /memories/id-a"); !strings.Contains(got, `"memory":"a"`) {
		t.Errorf("a refused batch changed %s", got)
	}
	if code, got := ask(t, h, "GET /memories/id-a", "Tenant", "broken"); code != http.StatusInternalServerError ||
		strings.Contains(got, "secrets") {
		t.Errorf("a store that fails: %d %s", code, got)
	}
}

// Nothing of one tenant's can be read, found, listed, changed or deleted by another.
func TestTenantsAreApart(t *testing.T) {
	h := newAPI(t)
	ask(t, h, `POST /memories {"messages":"Ana keeps bees.","user_id":"ana"}`)
	for _, request := range []string{
		"GET /memories/id-a", "GET /memories/id-a/history", `PUT /memories/id-a {"text":"x"}`, "DELETE /memories/id-a",
	} {
		if code, got := ask(t, h, request, "Tenant", "other"); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", request, code, got)
		}
	}
	for _, request := range []string{
		"GET /memories?user_id=ana", `POST /search {"query":"bees","user_id":"ana"}`, `POST /v3/memories/ {"filters":{"user_id":"ana"}}`,
		"GET /v1/entities/",
	} {
		if code, got := ask(t, h, request, "Tenant", "other"); code != http.StatusOK || !strings.Contains(got, `"results":[]`) {
			t.Errorf("%s: %d %s", request, code, got)
		}
	}
	ask(t, h, "DELETE /memories?user_id=ana", "Tenant", "other")
	ask(t, h, "POST /mem0/reset", "Tenant", "other")
	if _, got := ask(t, h, "GET /memories/id-a"); !strings.Contains(got, "bees") {
		t.Errorf("another tenant deleted it: %s", got)
	}
}

// Routes of Mem0's service that are not offered say so, by whatever method, and whatever stands behind them.
func TestNotOffered(t *testing.T) {
	h := newAPI(t)
	for _, prefix := range []string{"", "/mem0"} {
		for _, path := range []string{"/v1/feedback", "/v1/exports", "/v1/summary", "/v1/webhooks"} {
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				for _, rest := range []string{"", "/", "/get", "/projects/p1/", "/a/b/c?x=1"} {
					request := method + " " + prefix + path + rest
					code, got := ask(t, h, request+` {"memory_id":"x"}`, "Tenant", "broken")
					if want := `{"detail":"` + method + " " + prefix + path; code != http.StatusNotImplemented || !strings.HasPrefix(got, want) {
						t.Errorf("%s: %d %s", request, code, got)
					}
				}
			}
		}
		for _, request := range []string{
			"POST " + prefix + "/v1/entities/", "PUT " + prefix + "/v1/entities", "GET " + prefix + "/v1/entities/user/ana/",
			"DELETE " + prefix + "/v1/entities/user/",
			"PATCH " + prefix + "/v1/entities/user/ana/memories/1",
		} {
			if code, got := ask(t, h, request); code != http.StatusNotImplemented || !strings.Contains(got, `"detail"`) {
				t.Errorf("%s: %d %s", request, code, got)
			}
		}
		if code, got := ask(t, h, "GET "+prefix+"/v1/entities/"); code != http.StatusOK {
			t.Errorf("entities: %d %s", code, got)
		}
	}
}
