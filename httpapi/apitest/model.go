package apitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// WeatherCall is a model's answer that calls the tool weather for Rome.
const WeatherCall = `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant",` +
	`"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather",` +
	`"arguments":"{\"city\":\"Rome\"}"}}]}}]}`

// ModelServer is a fake language model provider that records its requests.
type ModelServer struct {
	*httptest.Server
	mu       sync.Mutex
	Requests []map[string]any
}

// NewModelServer answers the nth request with what say returns: the text of the answer,
// or the whole body if it begins with "{".
func NewModelServer(t testing.TB, say func(n int, request map[string]any) string) *ModelServer {
	server := &ModelServer{}
	server.Server = httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(request.Body).Decode(&body)
		server.mu.Lock()
		server.Requests = append(server.Requests, body)
		length := len(server.Requests)
		server.mu.Unlock()
		text := say(length, body)
		switch {
		case text == "broken":
			response.WriteHeader(http.StatusInternalServerError)
		case body["stream"] == true && text == WeatherCall:
			response.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(
				response,
				`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function",`+
					`"function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}]},`+
					`"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n",
			)
		case body["stream"] == true:
			response.Header().Set("Content-Type", "text/event-stream")
			pieces := strings.SplitAfter(text, " ")
			for _, piece := range pieces {
				if piece == "CUT" {
					return
				}
				raw, _ := json.Marshal(piece)
				fmt.Fprintf(response, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", raw)
			}
			io.WriteString(
				response,
				"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"+
					"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,"+
					"\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
			)
		case strings.HasPrefix(text, "{"):
			response.Header().Set("Content-Type", "application/json")
			io.WriteString(response, text)
		default:
			response.Header().Set("Content-Type", "application/json")
			raw, _ := json.Marshal(text)
			fmt.Fprintf(
				response,
				`{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s}}],`+
					`"usage":{"prompt_tokens":5,"completion_tokens":3}}`,
				raw,
			)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// Messages returns the messages of a request, numbered from 0.
func (m *ModelServer) Messages(n int) []any {
	return m.Requests[n]["messages"].([]any)
}

// NewFixedModel is a model provider that gives one answer and rejects every key but
// "k". It returns its URL.
func NewFixedModel(t testing.TB, answer string) string {
	t.Helper()
	ts := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, r *http.Request) {
		response.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer k" {
			response.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(response, `{"error":{"message":"wrong key"}}`)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/models") {
			fmt.Fprint(response, `{"object":"list","data":[{"id":"small"},{"id":"large"}]}`)
			return
		}
		var request struct{ Stream bool }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		if !request.Stream {
			fmt.Fprintf(
				response,
				`{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",`+
					`"content":%s},"finish_reason":"stop"}]}`,
				Quoted(answer),
			)
			return
		}
		response.Header().Set("Content-Type", "text/event-stream")
		for _, word := range strings.SplitAfter(answer, " ") {
			fmt.Fprintf(
				response,
				"data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,"+
					"\"delta\":{\"content\":%s}}]}\n\n",
				Quoted(word),
			)
		}
		fmt.Fprint(
			response,
			"data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},"+
				"\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		)
	}))
	t.Cleanup(ts.Close)
	return ts.URL + "/v1"
}

// SayOfShop answers a prompt about the first page of the site as a model would.
func SayOfShop(prompt string) string {
	ref := "none"
	if m := regexp.MustCompile(`textbox.*?\[ref=(\w+)\]`).FindStringSubmatch(prompt); m != nil {
		ref = m[1]
	}
	switch {
	case strings.Contains(prompt, "Buy a boat."):
		return `{"actions":[],"reason":"There is no boat."}`
	case strings.Contains(prompt, "You read a web page"):
		return `{"name":"it is hidden"}`
	case strings.Contains(prompt, "to reach a user's goal"):
		return `{"note":"","action":"done","ref":"","text":"It is a shop.","description":""}`
	}
	return `{"actions":[{"action":"type","ref":"` + ref +
		`","text":"%name%","description":"Write the name."}],"reason":""}`
}

// Handbook is a document in Markdown that a model can answer from.
const Handbook = "# Handbook\n\n## Returns\n\nYou may return bread within two days with the receipt.\n\n" +
	"## Opening\n\nWe open at seven."
