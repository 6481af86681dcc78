package agent

import (
	"fmt"
	"strings"
	"testing"
)

func TestNodeSecrets(t *testing.T) {
	nodes := list[RawNode](t, `[{"id":"t","type":"set","data":{"auth":{"token":"no secret"}}},
		{"id":"h","type":"http-request","mine":1.50,"data":{"url":"https://x.y","auth":{"type":"bearer","token":"s1"},"headers":{"X-Api-Key":"s2","Accept":"a","Idempotency-Key":"k"}}},
		{"id":"i","type":"http-request","data":{"auth":{"type":"basic","username":"u","password":"********"},"headers":{"Cookie":"{{c}}"}}}]`)
	masked, taken, err := TakeNodeSecrets(nodes)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(taken.Given) != "map[h/auth.token:s1 h/headers.X-Api-Key:s2]" || fmt.Sprint(taken.Kept) != "[i/auth.password]" {
		t.Errorf("taken %v, kept %v", taken.Given, taken.Kept)
	}
	if string(masked[0]) != string(nodes[0]) || string(masked[2]) != string(nodes[2]) {
		t.Error("a node without new secrets was changed")
	}
	if text := string(masked[1]); strings.Contains(text, "s1") || strings.Contains(text, "s2") || !strings.Contains(text, "1.50") || !strings.Contains(text, `"Accept":"a"`) {
		t.Errorf("masked: %s", text)
	}
	g, err := ParseGraph(masked, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	data, err := PutNodeSecrets("h", g.Nodes[1].Data, func(name string) (string, error) { return taken.Given[name], nil })
	if err != nil || data["auth"].(map[string]any)["token"] != "s1" || data["headers"].(map[string]any)["X-Api-Key"] != "s2" {
		t.Errorf("put back: %v %v", data, err)
	}
	if g.Nodes[1].Data["auth"].(map[string]any)["token"] != Mask {
		t.Error("the secret was put into the graph itself")
	}
}
