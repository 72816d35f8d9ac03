package openai_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/openai"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// llamaServer starts a real llama-server and returns its address. Tests that need one skip unless the environment says where
// the program and a model are.
func llamaServer(t *testing.T, args ...string) string {
	t.Helper()
	program, model := testkit.Llama(t)
	address := testkit.FreeAddress(t)
	host, port, _ := net.SplitHostPort(address)
	var log bytes.Buffer
	args = append([]string{"-m", model, "--host", host, "--port", port, "-t", "1", "-c", "2048"}, args...)
	cmd := exec.Command(program, args...) //nolint:noctx // it is killed below
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/health", http.NoBody)
		res, err := client.Do(req)
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return "http://" + address + "/v1"
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("no answer: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// client keeps no connection, so that no goroutine outlives a test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func TestRealLlamaServer(t *testing.T) {
	url := llamaServer(t, "--embeddings", "--pooling", "mean", "-b", "256", "-ub", "256", "--api-key", "right")
	options := openai.Options{URL: url, Key: "right", Model: "tiny", Client: client}
	texts := []string{"Ana plays the violin.", "The harbour was quiet.", "Ana plays the violin."}
	e, err := openai.New(options)
	if err != nil {
		t.Fatal(err)
	}
	binary, err := e.EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	options.Encoding, options.Batch = openai.Float, 2
	if e, err = openai.New(options); err != nil {
		t.Fatal(err)
	}
	decimal, err := e.EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range texts {
		if cos, err := embed.Cosine(binary[i], decimal[i]); err != nil || math.Abs(cos-1) > 1e-5 {
			t.Errorf("%q: cosine %v of base64 and decimal, %v", texts[i], cos, err)
		}
	}
	if slices.Equal(binary[0], binary[1]) {
		t.Error("two texts have one vector")
	}
	if _, err := e.EmbedQuery(t.Context(), strings.Repeat("Ana plays the violin. ", 2000)); !errors.Is(err, openai.ErrTooLong) {
		t.Errorf("a long text: %v", err)
	}
	options.Key = "wrong"
	if e, err = openai.New(options); err != nil {
		t.Fatal(err)
	}
	if _, err := e.EmbedQuery(t.Context(), "a"); !errors.Is(err, openai.ErrUnauthorized) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong key: %v", err)
	}
}

func TestRealLlamaServerWithoutEmbeddings(t *testing.T) {
	e, err := openai.New(openai.Options{URL: llamaServer(t), Client: client})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := e.EmbedQuery(t.Context(), "a"); !errors.Is(err, openai.ErrNoModel) {
		t.Errorf("a server of chats: %v, %v", v, err)
	}
}

// A port that was just given back refuses connections.
func TestConnectionRefused(t *testing.T) {
	address := testkit.FreeAddress(t)
	e, err := openai.New(openai.Options{URL: "http://" + address, Client: client, MaxWait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.EmbedQuery(t.Context(), "a"); !errors.Is(err, openai.ErrUnavailable) {
		t.Errorf("err = %v", err)
	}
}
