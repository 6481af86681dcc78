package credentials

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// A token endpoint may grant with any status of success, and refuse with 200; a refusal of
// the refresh token needs a person, whatever the provider calls it.
func TestAnswersOfTokenEndpoints(t *testing.T) {
	for _, tc := range []struct {
		name        string
		status      int
		media, body string
		access      string
		wantStatus  agent.CredentialStatus // of the credential; empty: unchanged
	}{
		{"created", 201, "application/json", `{"access_token":"a","token_type":"bearer","expires_in":"3600"}`, "a", ""},
		{"accepted", 202, "application/json", `{"access_token":"a"}`, "a", ""},
		{"form", 200, "application/x-www-form-urlencoded", `access_token=a&token_type=bearer`, "a", ""},
		{
			"a byte order mark",
			200,
			"text/html; charset=utf-8",
			"\ufeff" + `{"access_token":"a","token_type":"BEARER","expires_in":"soon"}`,
			"a",
			"",
		},
		{"another type of token", 200, "application/json", `{"access_token":"a","token_type":"mac"}`, "", ""},
		{"invalid grant", 400, "application/json", `{"error":"invalid_grant"}`, "", agent.CredentialNeedsLogin},
		{"bad refresh token", 200, "application/json", `{"error":"bad_refresh_token"}`, "", agent.CredentialNeedsLogin},
		{
			"as a form",
			200,
			"application/x-www-form-urlencoded",
			`error=bad_refresh_token`,
			"",
			agent.CredentialNeedsLogin,
		},
		{
			"invalid refresh token",
			200,
			"application/json",
			`{"ok":false,"error":"invalid_refresh_token"}`,
			"",
			agent.CredentialNeedsLogin,
		},
		{"revoked", 401, "application/json", `{"error":"token_revoked"}`, "", agent.CredentialNeedsLogin},
		{
			"Microsoft",
			400,
			"application/json",
			`{"error":"interaction_required","error_description":"AADSTS50076: use multi-factor ` +
				`authentication","error_codes":[50076]}`,
			"",
			agent.CredentialNeedsLogin,
		},
		{
			"HubSpot",
			400,
			"application/json",
			`{"status":"BAD_REFRESH_TOKEN","message":"missing or invalid refresh token","correlationId":"x"}`,
			"",
			agent.CredentialNeedsLogin,
		},
		{
			"HubSpot's client",
			400,
			"application/json",
			`{"status":"BAD_CLIENT_ID","message":"missing or unknown client id"}`,
			"",
			agent.CredentialFailing,
		},
		{
			"Atlassian",
			403,
			"application/json",
			`{"error":"unauthorized_client","error_description":"refresh_token is invalid"}`,
			"",
			agent.CredentialNeedsLogin,
		},
		{
			"Fitbit",
			400,
			"application/json",
			`{"errors":[{"errorType":"invalid_grant","message":"Refresh token invalid: x"}],"success":false}`,
			"",
			agent.CredentialNeedsLogin,
		},
		{"Zoho", 200, "application/json", `{"error":"invalid_code"}`, "", agent.CredentialNeedsLogin},
		{
			"Slack's inactive account",
			200,
			"application/json",
			`{"ok":false,"error":"account_inactive"}`,
			"",
			agent.CredentialNeedsLogin,
		},
		{"a numeric status alone", 400, "application/json", `{"status":400,"message":"Bad Request"}`, "", ""},
		{"a list without a code", 400, "application/json", `{"errors":["x"]}`, "", ""},
		{"wrong client", 401, "application/json", `{"error":"invalid_client"}`, "", agent.CredentialFailing},
		{
			"wrong client with 200",
			200,
			"application/json",
			`{"error":"incorrect_client_credentials"}`,
			"",
			agent.CredentialFailing,
		},
		{"temporary", 200, "application/json", `{"error":"temporarily_unavailable"}`, "", ""},
		{"failure", 500, "application/json", `{"error":"bad_refresh_token"}`, "", ""},
		{"redirect with a token", 302, "application/json", `{"access_token":"a"}`, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.media)
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer provider.Close()
			c := New(Options{Env: store.Env{Allow: agent.MustAddressRanges("127.0.0.0/8")}})
			var o store.OpenCredential
			o.Type, o.Config.Grant = agent.CredentialOAuth2, agent.GrantCode
			got, err := c.askTokens(t.Context(), o, provider.URL, url.Values{"grant_type": {"refresh_token"}})
			if got.AccessToken != tc.access || (err == nil) != (tc.access != "") {
				t.Fatalf("%q %v", got.AccessToken, err)
			}
			if status := statusAfter(o, err); status != tc.wantStatus {
				t.Errorf("the credential is %q, want %q", status, tc.wantStatus)
			}
		})
	}
}
