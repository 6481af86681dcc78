package httpapi

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/signature"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// signedHeaders returns the headers of Standard Webhooks.
func signedHeaders(secret, id string, at time.Time, body string) []string {
	return []string{
		"webhook-id", id,
		"webhook-timestamp", strconv.FormatInt(at.Unix(), 10),
		"webhook-signature", signature.Sign([]string{secret}, id, at, []byte(body)),
	}
}

func hmacOf(secret, body string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return mac.Sum(nil)
}

// newHookServer starts a service with access control and a running engine, and returns it
// with its owner's client.
func newHookServer(t *testing.T) (*proxiedServer, *testClient) {
	t.Helper()
	c := newProxiedServer(t, nil)
	if err := c.server.flow.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.server.flow.Stop)
	owner := c.as(t, "owner@example.com")
	owner.must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	return c, owner
}

// createHookWorkflow creates a workflow that a hook starts, with auth.
func createHookWorkflow(t *testing.T, owner *testClient, auth string) string {
	t.Helper()
	made := owner.must(t, 201, "POST", "/api/agents/bakery/workflows", `{"name":"w","status":"active","settings":{"concurrency":50},
		"nodes":[{"id":"t","type":"trigger","data":{"event":"webhook"`+auth+`}},{"id":"s","type":"set","data":{"values":{"got":"{{body}}"}}}],"edges":[{"source":"t","target":"s"}]}`)
	return made["id"].(string)
}

// TestHookAuth starts workflows with the credentials that their triggers require, from
// callers without an identity.
func TestHookAuth(t *testing.T) {
	c, owner := newHookServer(t)
	const body = `{"a":1}`
	now := time.Now()
	good := hex.EncodeToString(hmacOf("s3cret", body))
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("ada:pa:ss"))
	for _, tc := range []struct {
		name, auth string
		headers    []string
		want       int
	}{
		{"no auth", ``, nil, 403},
		{"null", `,"auth":null`, nil, 403},
		{"open to all", `,"auth":{"type":"none"}`, nil, 200},
		{"bearer", `,"auth":{"type":"bearer","token":"t0ken"}`, []string{"Authorization", "bearer t0ken"}, 200},
		{
			"another bearer",
			`,"auth":{"type":"bearer","token":"t0ken"}`,
			[]string{"Authorization", "Bearer t0ken2"},
			401,
		},
		{"no bearer", `,"auth":{"type":"bearer","token":"t0ken"}`, nil, 401},
		{
			"the mask",
			`,"auth":{"type":"bearer","token":"t0ken"}`,
			[]string{"Authorization", "Bearer " + agent.Mask},
			401,
		},
		{
			"basic",
			`,"auth":{"type":"basic","username":"ada","password":"pa:ss"}`,
			[]string{"Authorization", basic},
			200,
		},
		{
			"another basic",
			`,"auth":{"type":"basic","username":"ada","password":"pass"}`,
			[]string{"Authorization", basic},
			401,
		},
		{
			"malformed basic",
			`,"auth":{"type":"basic","username":"ada","password":"pa:ss"}`,
			[]string{"Authorization", "Basic !"},
			401,
		},
		{
			"header",
			`,"auth":{"type":"header","name":"X-Hook-Token","value":"v4lue"}`,
			[]string{"X-Hook-Token", "v4lue"},
			200,
		},
		{
			"another header",
			`,"auth":{"type":"header","name":"X-Hook-Token","value":"v4lue"}`,
			[]string{"X-Hook-Token", "value"},
			401,
		},
		{"GitHub", `,"auth":{"type":"hmac","secret":"s3cret"}`, []string{"X-Hub-Signature-256", "sha256=" + good}, 200},
		{
			"base64 in another header",
			`,"auth":{"type":"hmac","secret":"s3cret","header":"X-Shop-Hmac"}`,
			[]string{"X-Shop-Hmac", base64.StdEncoding.EncodeToString(hmacOf("s3cret", body))},
			200,
		},
		{
			"another body",
			`,"auth":{"type":"hmac","secret":"s3cret"}`,
			[]string{"X-Hub-Signature-256", "sha256=" + hex.EncodeToString(hmacOf("s3cret", "{}"))},
			401,
		},
		{
			"half a signature",
			`,"auth":{"type":"hmac","secret":"s3cret"}`,
			[]string{"X-Hub-Signature-256", "sha256=" + good[:32]},
			401,
		},
		{
			"Standard Webhooks",
			`,"auth":{"type":"standard-webhooks","secret":"` + hookSecret + `"}`,
			signedHeaders(hookSecret, "m-1", now, body),
			200,
		},
		{
			"six minutes late",
			`,"auth":{"type":"standard-webhooks","secret":"` + hookSecret + `"}`,
			signedHeaders(hookSecret, "m-1", now.Add(-6*time.Minute), body),
			401,
		},
		{
			"unsigned",
			`,"auth":{"type":"standard-webhooks","secret":"` + hookSecret + `"}`,
			[]string{"webhook-id", "m-1"},
			401,
		},
	} {
		id := createHookWorkflow(t, owner, tc.auth)
		client := c.testClient
		for i := 0; i+1 < len(tc.headers); i += 2 {
			client = client.with(tc.headers[i], tc.headers[i+1])
		}
		a := client.send(t, "POST", "/api/agents/bakery/hooks/"+id, body)
		if a.StatusCode != tc.want {
			t.Errorf("%s: %d, want %d: %s", tc.name, a.StatusCode, tc.want, a.text)
		}
		if tc.auth != "" && tc.want == 401 {
			if a := owner.send(t, "POST", "/api/agents/bakery/hooks/"+id, body); a.StatusCode != 401 {
				t.Errorf(
					"%s: the agent's owner is accepted without the trigger's credential: %d",
					tc.name, a.StatusCode,
				)
			}
		}
		kept := owner.send(t, "GET", "/api/agents/bakery/workflows/"+id, "").text + owner.send(
			t,
			"GET",
			"/api/agents/bakery/workflows/executions?workflow_id="+id,
			"",
		).text +
			owner.send(
				t,
				"POST",
				"/api/agents/bakery/sql/execute",
				`{"query":"SELECT nodes, input FROM workflows w LEFT JOIN executions e ON e.workflow_id = w.id"}`,
			).text
		for _, secret := range []string{"t0ken", "pa:ss", "v4lue", "s3cret", hookSecret} {
			if strings.Contains(kept, secret) {
				t.Errorf("%s: the secret %s is shown: %s", tc.name, secret, kept)
			}
		}
	}
	if a := c.send(t, "POST", "/api/agents/bakery/hooks/workflow-x", body); a.StatusCode != 403 {
		t.Errorf("an unidentified caller can tell that a workflow does not exist: %d", a.StatusCode)
	}
	if a := c.with("Authorization", "Bearer made-up").send(
		t,
		"POST",
		"/api/agents/bakery/hooks/"+createHookWorkflow(t, owner, ``),
		body,
	); a.StatusCode != 401 {
		t.Errorf("an invalid API key: %d", a.StatusCode)
	}
}

// TestHookAuthInput rejects invalid auth.
func TestHookAuthInput(t *testing.T) {
	c := newTestClient(t)
	for _, tc := range []struct{ name, status, auth, field string }{
		{"a text", "draft", `"secret"`, "nodes[0].data.auth"},
		{"unknown type", "draft", `{"type":"magic"}`, "nodes[0].data.auth.type"},
		{"a template", "draft", `{"type":"bearer","token":"{{trigger.token}}"}`, "nodes[0].data.auth.token"},
		{"a number", "draft", `{"type":"bearer","token":5}`, "nodes[0].data.auth.token"},
		{"unknown repeats", "draft", `{"type":"hmac","repeats":"stop"}`, "nodes[0].data.auth.repeats"},
		{"invalid header name", "draft", `{"type":"header","name":"a b"}`, "nodes[0].data.auth.name"},
		{"no type", "active", `{}`, "nodes[0].data.auth.type"},
		{"no token", "active", `{"type":"bearer"}`, "nodes[0].data.auth.token"},
		{"no password", "active", `{"type":"basic","username":"ada"}`, "nodes[0].data.auth.password"},
		{"an empty secret", "active", `{"type":"hmac","secret":""}`, "nodes[0].data.auth.secret"},
		{
			"a mask without a stored secret",
			"active",
			`{"type":"hmac","secret":"` + agent.Mask + `"}`,
			"data.auth.secret",
		},
	} {
		a := c.send(
			t,
			"POST",
			flowBase,
			`{"name":"w","status":"`+tc.status+
				`","nodes":[{"id":"t","type":"trigger","data":{"event":"webhook","auth":`+tc.auth+`}}],"edges":[]}`,
		)
		if a.StatusCode != 400 ||
			at(a.json, "error.details.field") != tc.field ||
			at(a.json, "error.details.node_id") != "t" {
			t.Errorf("%s: %d %s", tc.name, a.StatusCode, a.text)
		}
	}
	// a draft may be unfinished
	c.must(
		t, 201, "POST", flowBase,
		`{"name":"w","nodes":[{"id":"t","type":"trigger","data":{"event":"webhook",`+
			`"auth":{"type":"hmac"}}}],"edges":[]}`,
	)
	made := c.must(
		t, 201, "POST", flowBase,
		`{"name":"w","status":"active","nodes":[{"id":"t","type":"trigger","data":{"event":"webhook",`+
			`"auth":{"type":"bearer","token":"t0ken"}}}],"edges":[]}`,
	)
	whole := c.send(t, "GET", flowBase+"/"+made["id"].(string), "").text
	c.must(t, 200, "PUT", flowBase+"/"+made["id"].(string), whole) // the mask keeps what is stored
	if a := c.with("Authorization", "Bearer t0ken").send(
		t,
		"POST",
		"/api/agents/default/hooks/"+made["id"].(string),
		`{}`,
	); a.StatusCode != 200 {
		t.Errorf("after writing the mask back: %d %s", a.StatusCode, a.text)
	}
}

// TestHookRepeated sends deliveries repeatedly: each id counts once and gets the same
// response.
func TestHookRepeated(t *testing.T) {
	c := newTestClient(t)
	made := func(tail, edges string) string {
		return c.must(
			t, 201, "POST", flowBase,
			`{"name":"w","status":"active","settings":{"concurrency":50},"nodes":[{"id":"t","type":"trigger",`+
				`"data":{"event":"webhook"}}`+tail+`],"edges":[`+edges+`]}`,
		)["id"].(string)
	}
	plain, answers :=
		made("", ""),
		made(
			`,{"id":"r","type":"webhook-response","data":{"status":201,"body":"{{execution.id}}"}}`,
			`{"source":"t","target":"r"}`,
		)
	for _, header := range []string{"webhook-id", "svix-id", "Idempotency-Key"} {
		sender := c.with(header, "d-"+header)
		first := sender.must(t, 200, "POST", "/api/agents/default/hooks/"+plain, `{}`)
		again := sender.must(t, 200, "POST", "/api/agents/default/hooks/"+plain, `{}`)
		if first["execution_id"] != again["execution_id"] {
			t.Errorf("%s: %v, then %v", header, first, again)
		}
		one := sender.send(t, "POST", "/api/agents/default/hooks/"+answers, `{}`) // another hook is another delivery
		two := sender.send(t, "POST", "/api/agents/default/hooks/"+answers, `{}`)
		if one.StatusCode != 201 || two.StatusCode != 201 || one.text != two.text || one.text == first["execution_id"] {
			t.Errorf("%s: %d %s, then %d %s", header, one.StatusCode, one.text, two.StatusCode, two.text)
		}
	}
	if n := len(c.executions(t, 6)); n != 6 {
		t.Errorf("%d executions of 6 deliveries", n)
	}
	if a := c.with("webhook-id", strings.Repeat("x", 257)).send(
		t,
		"POST",
		"/api/agents/default/hooks/"+plain,
		`{}`,
	); a.StatusCode != http.StatusBadRequest {
		t.Errorf("an id that is too long: %d", a.StatusCode)
	}
}

// TestHookReplayed replays signed requests, changing everything that the signature does
// not cover.
func TestHookReplayed(t *testing.T) {
	c, owner := newHookServer(t)
	hub := func(body string, headers ...string) *testClient {
		sender := c.testClient.with("X-Hub-Signature-256", "sha256="+hex.EncodeToString(hmacOf("s3cret", body)))
		for i := 0; i+1 < len(headers); i += 2 {
			sender = sender.with(headers[i], headers[i+1])
		}
		return sender
	}
	strict, loose :=
		createHookWorkflow(t, owner, `,"auth":{"type":"hmac","secret":"s3cret"}`),
		createHookWorkflow(t, owner, `,"auth":{"type":"hmac","secret":"s3cret","repeats":"start"}`)
	standard := createHookWorkflow(t, owner, `,"auth":{"type":"standard-webhooks","secret":"`+hookSecret+`"}`)
	const one, two = `{"a":1}`, `{"a":2}`
	known := map[string]string{}
	for _, tc := range []struct {
		name, hook, body string
		sender           *testClient
		like             string // whose execution it leads to; its own name: it starts one
	}{
		{"first", strict, one, hub(one), "first"},
		{"again", strict, one, hub(one), "first"},
		{"again with an id", strict, one, hub(one, "X-GitHub-Delivery", "g1"), "first"},
		{"again with another", strict, one, hub(one, "webhook-id", "w1", "Idempotency-Key", "i1"), "first"},
		{
			"again in base64",
			strict,
			one,
			c.testClient.with("X-Hub-Signature-256", base64.StdEncoding.EncodeToString(hmacOf("s3cret", one))),
			"first",
		},
		{"another body", strict, two, hub(two, "X-GitHub-Delivery", "g2"), "another body"},
		{"redelivered", strict, two, hub(two, "X-GitHub-Delivery", "g2"), "another body"},
		{"another hook", loose, one, hub(one), "another hook"},
		{"repeated on another hook", loose, one, hub(one), "repeated on another hook"},
		{"named", loose, one, hub(one, "X-GitHub-Delivery", "g1"), "named"},
		{"named again", loose, one, hub(one, "X-GitHub-Delivery", "g1"), "named"},
		{"named by Shopify", loose, one, hub(one, "X-Shopify-Webhook-Id", "s1"), "named by Shopify"},
		{"named by Shopify again", loose, one, hub(one, "X-Shopify-Webhook-Id", "s1"), "named by Shopify"},
		{
			"Standard Webhooks",
			standard,
			one,
			c.withHeaders(signedHeaders(hookSecret, "m-1", time.Now(), one)),
			"Standard Webhooks",
		},
		{
			"with an additional key",
			standard,
			one,
			c.withHeaders(append(
				signedHeaders(hookSecret, "m-1", time.Now(), one),
				"Idempotency-Key", "i2", "X-GitHub-Delivery", "g2",
			)),
			"Standard Webhooks",
		},
		{
			"the same body, sent intentionally again",
			standard,
			one,
			c.withHeaders(signedHeaders(hookSecret, "m-2", time.Now(), one)),
			"the same body, sent intentionally again",
		},
	} {
		a := tc.sender.send(t, "POST", "/api/agents/bakery/hooks/"+tc.hook, tc.body)
		id := fmt.Sprint(a.json["execution_id"])
		if a.StatusCode != 200 {
			t.Fatalf("%s: %d %s", tc.name, a.StatusCode, a.text)
		}
		for name, of := range known {
			if (id == of) != (name == tc.like) {
				t.Errorf("%s: leads to the execution of %s", tc.name, name)
			}
		}
		if tc.like == tc.name {
			known[tc.name] = id
		}
	}
	// Of several at the same moment, one starts the workflow.
	const three = `{"a":3}`
	ids := make(chan string, 8)
	for range cap(ids) {
		go func() {
			a := hub(three, "webhook-id", agent.NewID(agent.KindDelivery)).send(
				t,
				"POST",
				"/api/agents/bakery/hooks/"+strict,
				three,
			)
			ids <- fmt.Sprint(a.json["execution_id"])
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first {
			t.Errorf("%s and %s were both started", first, id)
		}
	}
}

// withHeaders returns a client with more headers, given as names and values.
func (c *proxiedServer) withHeaders(headers []string) *testClient {
	v := c.testClient
	for i := 0; i+1 < len(headers); i += 2 {
		v = v.with(headers[i], headers[i+1])
	}
	return v
}

// TestHookRate checks that hooks have a rate limit separate from a client's other
// requests.
func TestHookRate(t *testing.T) {
	c := newProxiedServer(t, func(o *Options) { o.RateLimits = map[string]int{"general": 5} })
	for range 8 {
		if a := c.send(
			t,
			"POST",
			"/api/agents/default/hooks/workflow-x",
			"{}",
		); a.StatusCode == http.StatusTooManyRequests ||
			a.Header.Get("X-RateLimit-Limit") != "600" {
			t.Fatalf("%d, of %s a minute", a.StatusCode, a.Header.Get("X-RateLimit-Limit"))
		}
	}
}
