package store

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"satchel/agent"
)

// FuzzClearCredentials compares the schema's rule with what the API seals: the rule never
// refuses a node or a tool's config that was sealed, and accepts by SQL nothing that the
// API would have sealed.
func FuzzClearCredentials(f *testing.F) {
	for _, node := range []string{
		`{"id":"a","type":"http-request","data":{"auth":{"type":"bearer","token":"t0ken"},` +
			`"headers":{"X-Key":"k","Accept":"{{a}}"}}}`,
		`{"id":"a","type":"trigger","data":{"auth":{"secret":"s"},"auth":{"secret":"{{x}}"}}}`,
		`{"id":"a","type":"set","type":"http\u002drequest","data":[1],"data":{"\u0061uth":{"token":"\u0000{{"}}}`,
		`{"id":"a","type":"http-request","data":{"headers":{"\u0000X-Key":"a",` +
			`"X-\u212aey":"b","Idempotency-Key":"c"}}}`,
		`{"id":"a","type":"http-request","data":{"headers":{"KEY":"********","key":""},"auth":null}}`,
	} {
		f.Add([]byte(node))
	}
	f.Add([]byte(`{"url":"https://example.com","auth":{"type":"bearer","token":"t0ken"},"headers":{"Cookie":"a"}}`))
	f.Add(
		[]byte(`{"url":"https://example.com","auth":{},"auth":{"type":"basic","username":"u","password":"p"},` +
			`"headers":{"X":"********"}}`),
	)
	for random, n := rand.New(rand.NewPCG(1, 2)), 0; n < 300; n++ {
		choices := make([]byte, 80)
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		f.Add(choices)
	}
	db := openFolder(f).Default()
	w, err := db.CreateWorkflow(f.Context(), agent.Workflow{
		Name:   "w",
		Status: agent.WorkflowDraft,
		Nodes:  []agent.RawNode{},
		Edges:  []agent.RawEdge{},
	})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := db.SQL(
		f.Context(),
		"INSERT INTO tools(name, type) VALUES ('t', 'api')",
		Params{},
		Access{Write: true},
	); err != nil {
		f.Fatal(err)
	}
	write := func(t *testing.T, statement, text string, params ...any) error {
		_, err := db.SQL(t.Context(), statement, Params{List: append([]any{text}, params...)}, Access{Write: true})
		if err != nil && agent.ErrorCode(err) != agent.CodeExecution {
			t.Fatalf("%s of %s: %v", statement, text, err)
		}
		return err
	}
	check := func(t *testing.T, raw []byte) {
		var object map[string]json.RawMessage
		if len(raw) > 4096 ||
			agent.CheckNesting("body", raw) != nil ||
			json.Unmarshal(raw, &object) != nil ||
			object == nil {
			return
		}
		masked, taken, err := agent.TakeNodeSecrets([]agent.RawNode{agent.RawNode(raw)})
		if err != nil {
			return
		}
		const nodes = "UPDATE workflows SET nodes = json_array(json(?)) WHERE id = ?"
		if write(t, nodes, string(raw), w.ID) == nil && len(taken.Given) > 0 {
			t.Errorf("SQL writes in clear what the API seals: %s", raw)
		}
		if err := write(t, nodes, string(masked[0]), w.ID); err != nil {
			t.Errorf("%s became %s, which cannot be stored: %v", raw, masked[0], err)
		}
		tool := agent.Tool{Name: "t", Type: agent.ToolAPI, Config: raw}
		given, _, err := takeToolSecrets(&tool)
		if err != nil {
			return
		}
		const tools = "UPDATE tools SET config = ?"
		if write(t, tools, string(raw)) == nil && len(given) > 0 {
			t.Errorf("SQL writes in clear what the API seals: %s", raw)
		}
		if err := write(t, tools, string(tool.Config)); err != nil {
			t.Errorf("%s became %s, which cannot be stored: %v", raw, tool.Config, err)
		}
	}
	f.Fuzz(func(t *testing.T, given []byte) {
		check(t, given)
		check(t, buildNode(given))
	})
}

// buildNode builds a node, or a config, from bytes: each byte selects what comes next, so
// that keys repeat, in unusual spellings and places.
func buildNode(choices []byte) []byte {
	names := []string{
		`type`, `data`, `auth`, `headers`, `id`, `token`, `value`, `secret`, `a\u0075th`, `\u0064ata`, `X-Key`,
		`x-\u006bey`, `Auth`, `to\u212aen`, `Idempotency-Key`, `url`, `\u0000key`,
	}
	texts := []string{
		`http-request`, `trigger`, `set`, `http\u002drequest`, `s3cret`, `********`, ``, `{{x}}`, `\u007b{x}}`,
		`bearer`, `https://example.com`, `\u0000{{`,
	}
	next := func() (b int) {
		if len(choices) > 0 {
			b, choices = int(choices[0]), choices[1:]
		}
		return b
	}
	var value func(depth int) string
	value = func(depth int) string {
		b := next()
		switch {
		case depth < 4 && b%8 < 4:
			text := "{"
			for i := range b / 8 % 5 {
				if i > 0 {
					text += ","
				}
				text += `"` + names[next()%len(names)] + `":` + value(depth+1)
			}
			return text + "}"
		case depth < 4 && b%8 == 4:
			return "[" + value(depth+1) + ",1.50]"
		case b%8 == 5:
			return []string{"null", "7", "true", "1e9"}[b/8%4]
		}
		return `"` + texts[b/8%len(texts)] + `"`
	}
	return []byte(`{"type":` + value(4) + `,"url":"https://example.com","data":` + value(1) + `,"auth":` + value(2) +
		`,"headers":` + value(2) + `,"type":"http-request","data":` + value(1) + `}`)
}
