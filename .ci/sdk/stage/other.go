package stage

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// other answers the endpoints that the sidecar only passes on.
func other(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	isAnthropic := r.Header.Get("Anthropic-Version") != ""
	switch at := r.Method + " " + path; {
	case at == "GET /v1/models" && isAnthropic:
		send(w, 200, `{"data":[{"type":"model","id":"fake-1","display_name":"Fake","created_at":"2025-06-15T00:00:00Z"}],"has_more":false,"first_id":"fake-1","last_id":"fake-1"}`)
	case at == "GET /v1/models":
		send(w, 200, `{"object":"list","data":[{"id":"fake-1","object":"model","created":1750000000,"owned_by":"fake"}]}`)
	case at == "POST /v1/messages/count_tokens":
		send(w, 200, fmt.Sprintf(`{"input_tokens":%d}`, len(body)))
	case at == "POST /v1/embeddings":
		embeddings(w, body)
	case at == "GET /v1/responses" && r.Header.Get("Upgrade") == "websocket":
		socket(w, r)
	case at == "GET /v1/responses/resp_fake":
		send(w, 200, responsesAPI.whole("text", "0"))
	case at == "DELETE /v1/responses/resp_fake":
		send(w, 200, `{"id":"resp_fake","object":"response","deleted":true}`)
	case at == "POST /v1/files":
		keepFile(w, r, body)
	case at == "GET /v1/files/file-fake/content":
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(Binary())
	case isAnthropic:
		send(w, 404, messagesAPI.failure(404))
	default:
		send(w, 404, chatAPI.failure(404))
	}
}

// Binary is the content of the file that can be fetched: every byte, often.
func Binary() []byte {
	out := make([]byte, 100_000)
	for i := range out {
		out[i] = byte(i)
	}
	return out
}

// embeddings answers in the encoding that was asked for; Python's SDK asks for base64 unless it is told.
func embeddings(w http.ResponseWriter, body []byte) {
	var q struct {
		Format string `json:"encoding_format"`
	}
	_ = json.Unmarshal(body, &q)
	vector := `[0.5,-1,2]`
	if q.Format == "base64" {
		vector = `"AAAAPwAAgL8AAABA"`
	}
	send(w, 200, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":`+vector+`}],"model":"fake-1","usage":{"prompt_tokens":3,"total_tokens":3}}`)
}

// keepFile answers a multipart upload: the size is of the file, and the name ends with a digest of what arrived.
func keepFile(w http.ResponseWriter, r *http.Request, body []byte) {
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	file, head, err := r.FormFile("file")
	if err != nil {
		send(w, 400, chatAPI.failure(400))
		return
	}
	defer file.Close()
	content, _ := io.ReadAll(file)
	send(w, 200, fmt.Sprintf(`{"id":"file-fake","object":"file","bytes":%d,"created_at":1750000000,"filename":%q,"purpose":%q,"status":"processed"}`,
		len(content), fmt.Sprintf("%s-%x", head.Filename, sha256.Sum256(content)), r.FormValue("purpose")))
}
