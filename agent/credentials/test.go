package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"strconv"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/template"
	"satchel/store"
)

// maxTestAnswer is how much of the response to a test is read, in bytes.
const maxTestAnswer = 1 << 20

// TestResult is the outcome of a test of a credential.
type TestResult struct {
	Success bool   `json:"success"`
	Status  int    `json:"status" doc:"HTTP status of the answer; 0 without one." example:"200"`
	Error   string `json:"error" doc:"Why it failed; empty on success."`
	Account string `json:"account" doc:"Whose account it is, where the answer says so."`
}

// Test makes a credential's test request to find out whether it works. Without such
// a request, a credential of type oauth2 works if it gets a token.
func (c *Credentials) Test(ctx context.Context, db *store.DB, ref string) (TestResult, error) {
	o, err := db.OpenCredential(ctx, ref)
	if err != nil {
		return TestResult{}, err
	}
	test := o.Config.TestRequest
	if test == nil && o.Type != agent.CredentialOAuth2 {
		return TestResult{}, agent.Invalid("config.test", "is required: the credential has no request to test it with")
	}
	var t TestResult
	if test == nil {
		_, err = c.token(ctx, db, o.ID, "")
		t.Success = err == nil
	} else {
		t, err = c.runTest(ctx, db, o, test)
	}
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	if err != nil {
		t.Error = egress.Explain(err).Message
		return t, nil
	}
	if t.Success {
		err = db.NoteCredentialWorks(ctx, o, t.Account)
	} else if t.Status == 401 && o.Type != agent.CredentialOAuth2 {
		err = db.FailCredential(ctx, o, agent.CredentialFailing, t.Error)
	}
	return t, err
}

func (c *Credentials) runTest(
	ctx context.Context,
	db *store.DB,
	o store.OpenCredential,
	test *agent.CredentialTest,
) (t TestResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	a, err := c.attach(db, o)
	if err != nil {
		return t, err
	}
	target, err := url.Parse(test.URL)
	if err != nil {
		return t, agent.Invalid("config.test.url", "must be a URL")
	}
	call := egress.Call{
		Method:     test.Method,
		URL:        target,
		Accept:     "application/json",
		UserAgent:  "Satchel/" + c.version,
		Credential: a,
	}
	if test.Body != "" {
		call.Body, call.MediaType = []byte(test.Body), "application/json"
	}
	req, err := call.Request(ctx)
	if err != nil {
		return t, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return t, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxTestAnswer))
	if err != nil {
		return t, err
	}
	t.Status, t.Success = resp.StatusCode, resp.StatusCode < 300
	var answer map[string]any
	if json.NewDecoder(bytes.NewReader(raw)).Decode(&answer) == nil {
		if ok, present := answer["ok"].(bool); present && !ok { // Slack answers 200 with ok: false
			t.Success = false
		}
		t.Account = accountIn(answer, o.Config.AccountFields)
	}
	if !t.Success {
		t.Error = "the server answered with status " + resp.Status
		t.Account = ""
	}
	return t, nil
}

// accountIn returns the first text or number at one of the paths.
func accountIn(answer any, paths []string) string {
	for _, path := range paths {
		p, err := template.ParsePath(path)
		if err != nil {
			continue
		}
		found, _ := p.Walk(answer)
		switch v := found.(type) {
		case string:
			if v != "" {
				return agent.Clip(v, 200)
			}
		case float64:
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	return ""
}
