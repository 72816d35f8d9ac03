package stage

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed answers/*.txt
var answerFiles embed.FS

// api is one of the APIs whose answers stand in a file.
type api struct {
	name     string
	sections map[string]string // "text.json" to what stands below it
}

var chatAPI, responsesAPI, messagesAPI = readAPI("chat"), readAPI("responses"), readAPI("messages")

// readAPI reads sections that begin with a line "-- name --", in the manner of txtar.
func readAPI(name string) *api {
	text, err := fs.ReadFile(answerFiles, "answers/"+name+".txt")
	if err != nil {
		panic(err) // it is part of the program
	}
	a := &api{name: name, sections: map[string]string{}}
	for _, part := range strings.Split("\n"+string(text), "\n-- ")[1:] {
		title, body, _ := strings.Cut(part, " --\n")
		a.sections[title] = body
	}
	return a
}

// whole returns an answer that is not streamed.
func (a *api) whole(script, step string) string {
	return strings.TrimSpace(strings.ReplaceAll(a.sections[script+".json"], "%s", step))
}

// events returns the events of a streamed answer, each with the empty line that ends it.
func (a *api) events(script, step string) []string {
	text := strings.ReplaceAll(a.sections[script+".sse"], "%s", step)
	var out []string
	for event := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		out = append(out, event+"\n\n")
	}
	return out
}

// kinds are the types of errors by status, as the providers name them: OpenAI's, then Anthropic's.
var kinds = map[int][2]string{
	400: {"invalid_request_error", "invalid_request_error"},
	401: {"invalid_request_error", "authentication_error"},
	403: {"invalid_request_error", "permission_error"},
	404: {"invalid_request_error", "not_found_error"},
	422: {"invalid_request_error", "invalid_request_error"},
	429: {"requests", "rate_limit_error"},
	500: {"server_error", "api_error"},
	529: {"server_error", "overloaded_error"},
}

// failure is the body of an error.
func (a *api) failure(status int) string {
	if a == messagesAPI {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":"the fake says %d"},"request_id":"req_fake"}`, kinds[status][1], status)
	}
	return fmt.Sprintf(`{"error":{"message":"the fake says %d","type":%q,"param":"model","code":"fake_%d"}}`, status, kinds[status][0], status)
}

// broken is the event that ends a stream early.
func (a *api) broken() string {
	switch a {
	case messagesAPI:
		return "event: error\ndata: " + `{"type":"error","error":{"type":"overloaded_error","message":"the fake is overloaded"}}` + "\n\n"
	case responsesAPI:
		return "event: error\ndata: " + `{"type":"error","sequence_number":9,"code":"server_error","message":"the fake broke down","param":null}` + "\n\n"
	}
	return "data: " + `{"error":{"message":"the fake broke down","type":"server_error","param":null,"code":null}}` + "\n\n"
}
