package httpapi

import (
	"net/url"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"satchel/agent/credentials"
)

// oauthPolicy lets a page of a sign-in run nothing and load only its style sheet.
const (
	pageOfLogin = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action "
	oauthPolicy = pageOfLogin + "'none'"
)

// confirmPolicy also lets the page submit its form. Chromium applies form-action to each
// redirect after it, of which the provider may have several.
func confirmPolicy(login credentials.PendingLogin) string {
	if login.Secure {
		return pageOfLogin + "'self' https:"
	}
	return pageOfLogin + "'self' https: http:"
}

// confirmation is the page that a person agrees to before a sign-in begins.
func confirmation(login credentials.PendingLogin) htmlPage {
	facts := []fact{
		{"Agent", login.Agent},
		{"Credential", login.Credential},
		{"Provider", login.Provider},
		{"Asked for by", login.By},
	}
	if login.Scope != "" {
		facts = append(facts, fact{"Scopes", login.Scope})
	}
	return oauthPage(
		"Connect an account?",
		factList(facts),
		paragraph("You are about to sign in at the provider. The agent, and everyone who may change it, "+
			"can then use your account there."),
		element(
			"form",
			attributes("method", "post"),
			element(
				"p",
				nil,
				element("button", attributes("type", "submit"), textNode("Continue to "), foreign(login.Provider)),
			),
		),
		paragraph("If you did not expect this, close this page: nothing has happened yet."),
	)
}

// connected is the page after a login that succeeded.
func connected(done credentials.FinishedLogin) htmlPage {
	facts := factsOf(done)
	if done.Account != "" {
		facts = append(facts, fact{"Account", done.Account})
	}
	return oauthPage(
		"Connected",
		factList(facts),
		paragraph("The credential is ready. You can close this window: the console shows the connection already."),
		linkTo(done),
	)
}

// notConnected is the page of a login that cannot begin or did not succeed.
func notConnected(reason string, of credentials.FinishedLogin) htmlPage {
	first, size := utf8.DecodeRuneInString(reason)
	message := element(
		"p",
		attributes("class", "failure", "role", "alert"),
		foreign(string(unicode.ToUpper(first))+reason[size:]),
	)
	return oauthPage(
		"Not connected",
		message,
		factList(factsOf(of)),
		paragraph("To try again, open the credential or the MCP server in the console and connect it from there. "+
			"You can close this window."),
		linkTo(of),
	)
}

func factsOf(done credentials.FinishedLogin) []fact {
	if done.Credential == "" {
		return nil
	}
	return []fact{{"Agent", done.AgentName}, {"Credential", done.CredentialName}}
}

// linkTo links to the credential of a login in the console, or to the console.
func linkTo(done credentials.FinishedLogin) *html.Node {
	to, text := "/", "Open the console"
	if done.Credential != "" {
		to, text =
			"/#/agents/"+url.PathEscape(done.Agent)+"/credentials/"+url.PathEscape(done.Credential),
			"Open the credential in the console"
	}
	return element("p", nil, element("a", attributes("href", to), textNode(text)))
}

func oauthPage(title string, body ...*html.Node) htmlPage {
	heading := element("h1", nil, textNode(title))
	return htmlPage{
		Title: title + " · Satchel",
		Style: "/forms/form.css",
		Body:  append([]*html.Node{heading}, body...),
	}
}

// fact is one line of a list of names and values.
type fact struct{ name, value string }

// factList returns nil if there are no facts.
func factList(facts []fact) *html.Node {
	if len(facts) == 0 {
		return nil
	}
	list := element("dl", attributes("class", "facts"))
	for _, f := range facts {
		list.AppendChild(element("dt", nil, textNode(f.name)))
		list.AppendChild(element("dd", nil, foreign(f.value)))
	}
	return list
}

func paragraph(text string) *html.Node {
	return element("p", attributes("class", "text"), textNode(text))
}
