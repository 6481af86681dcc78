package mcp

import (
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestExact: the digits of structured content are those of the same content as text.
func TestExact(t *testing.T) {
	for _, c := range []struct{ structured, text, want string }{
		{`{"id":9007199254740993}`, "{\n \"id\": 9007199254740993\n}", `{"id":9007199254740993}`},
		{`{"list":[-12345678901234567891]}`, `{"list":[-12345678901234567891]}`, `{"list":[-12345678901234567891]}`},
		{`{"id":7}`, `{"id":8}`, `{"id":7}`},
		{`{"id":9007199254740993}`, `{"id":9007199254740993,"more":true}`, `{"id":9007199254740992}`},
	} {
		text, err := json.Marshal(c.text)
		if err != nil {
			t.Fatal(err)
		}
		var result sdk.CallToolResult
		if err := json.Unmarshal([]byte(`{"content":[{"type":"text","text":`+string(text)+`}],"structuredContent":`+c.structured+`}`), &result); err != nil {
			t.Fatal(err)
		}
		value, err := resultOf(&result, nil)
		if raw, _ := json.Marshal(value); err != nil || string(raw) != c.want {
			t.Errorf("%s: %s %v", c.structured, raw, err)
		}
	}
}
