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
	credential, err := db.OpenCredential(ctx, ref)
	if err != nil {
		return TestResult{}, err
	}
	test := credential.Config.TestRequest
	if test == nil && credential.Type != agent.CredentialOAuth2 {
		return TestResult{}, agent.Invalid("config.test", "is required: the credential has no request to test it with")
	}
	var result TestResult
	if test == nil {
		_, err = c.token(ctx, db, credential.ID, "")
		result.Success = err == nil
	} else {
		result, err = c.runTest(ctx, db, credential, test)
	}
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	if err != nil {
		result.Error = egress.Explain(err).Message
		return result, nil
	}
	if result.Success {
		err = db.NoteCredentialWorks(ctx, credential, result.Account)
	} else if result.Status == 401 && credential.Type != agent.CredentialOAuth2 {
		err = db.FailCredential(ctx, credential, agent.CredentialFailing, result.Error)
	}
	return result, err
}

func (c *Credentials) runTest(
	ctx context.Context,
	db *store.DB,
	credential store.OpenCredential,
	test *agent.CredentialTest,
) (result TestResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	attached, err := c.attach(db, credential)
	if err != nil {
		return result, err
	}
	target, err := url.Parse(test.URL)
	if err != nil {
		return result, agent.Invalid("config.test.url", "must be a URL")
	}
	call := egress.Call{
		Method:     test.Method,
		URL:        target,
		Accept:     "application/json",
		UserAgent:  "Satchel/" + c.version,
		Credential: attached,
	}
	if test.Body != "" {
		call.Body, call.MediaType = []byte(test.Body), "application/json"
	}
	req, err := call.Request(ctx)
	if err != nil {
		return result, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return result, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxTestAnswer))
	if err != nil {
		return result, err
	}
	result.Status, result.Success = resp.StatusCode, resp.StatusCode < 300
	var answer map[string]any
	if json.NewDecoder(bytes.NewReader(raw)).Decode(&answer) == nil {
		if ok, present := answer["ok"].(bool); present && !ok { // Slack answers 200 with ok: false
			result.Success = false
		}
		result.Account = accountIn(answer, credential.Config.AccountFields)
	}
	if !result.Success {
		result.Error = "the server answered with status " + resp.Status
		result.Account = ""
	}
	return result, nil
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
