package main

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// guide is a page of docs/guides, whose commands are run as written.
type guide struct {
	name    string
	data    string            // folder of the server; empty: a new one
	flags   []string          // of the server
	replace map[string]string // addresses of other companies
	files   map[string]string // in addition to the handbook
	after   map[int]string    // what others do after a block of commands
	prints  []string
}

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// script returns the commands of a guide, without the blocks that start servers.
func (g *guide) script(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("docs", "guides", g.name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for i, m := range shellBlock.FindAllStringSubmatch(string(raw), -1) {
		if !strings.Contains(m[1], "satchel serve") && !strings.Contains(m[1], "ollama pull") {
			script.WriteString(m[1])
		}
		script.WriteString(g.after[i])
	}
	text := script.String()
	for old, new := range g.replace {
		if !strings.Contains(text, old) {
			t.Errorf("the guide has no %s", old)
		}
		text = strings.ReplaceAll(text, old, new)
	}
	return text
}

// runGuide runs the commands of a guide in a folder with a handbook, with a server and
// the command line of this program.
func runGuide(t *testing.T, g guide) {
	t.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		if runtime.GOOS == "windows" {
			t.Skip("guides are for a POSIX shell")
		}
		t.Fatal(err)
	}
	data := cmp.Or(g.data, filepath.Join(t.TempDir(), "data"))
	s := start(t, append(g.flags, "--data", data)...)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "handbook.md"), handbook)
	for name, text := range g.files {
		write(t, filepath.Join(dir, name), text)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "satchel")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), shell, "-eu", "-c", g.script(t))
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Env = append(
		os.Environ(),
		"PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"),
		asProgram+"=1",
		"SATCHEL_SERVER="+strings.TrimSuffix(s.url, "/api"),
		"SATCHEL_DATA="+data,
		"OPENAI_API_KEY=sk-of-a-test",
		"TELEGRAM_TOKEN=77:token",
		"GITHUB_TOKEN=ghp_of-a-test",
		"SLACK_TOKEN=xoxb-1",
		"SLACK_SIGNING_SECRET=signs",
		"SLACK_CHANNEL=C1",
		"SHEET=sheet-1",
	)
	err = cmd.Run()
	for _, want := range g.prints {
		if !strings.Contains(out.String(), want) {
			err = errors.Join(err, errors.New("it does not print "+want))
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestGuideToTelegram(t *testing.T) {
	t.Parallel()
	out := newFakeServices(t)
	out.set(func() { out.says = "Within two days, with the receipt [1]." })
	runGuide(t, guide{
		name:  "telegram",
		flags: []string{"--outbound-allow", "127.0.0.1/32"},
		replace: map[string]string{
			`"llm_provider": "openai"`:      `"llm_provider": "openai", "llm_base_url": "` + out.URL + `/model"`,
			`"botToken": "$TELEGRAM_TOKEN"`: `"botToken": "$TELEGRAM_TOKEN", "apiBaseUrl": "` + out.URL + `"`,
		},
		prints: []string{
			"handbook.md, Handbook of the Harbour Bakery",
			`"ok": true`,
			"Within two days, with the receipt [1].",
			"[1] handbook.md", `"username": "shop_bot"`, `"auto_reply": true`, "4242",
		},
	})
}

func TestGuideToFirstSteps(t *testing.T) {
	t.Parallel()
	out := newFakeServices(t)
	out.set(func() { out.says = "Within two days [1]." })
	runGuide(t, guide{
		name:  "first-steps",
		flags: []string{"--outbound-allow", "127.0.0.1/32"},
		replace: map[string]string{
			`"llm_provider": "openai"`: `"llm_provider": "openai", "llm_base_url": "` + out.URL + `/model"`,
		},
		prints: []string{
			"[1] handbook.md, Handbook of the Harbour Bakery",
			"Within two days [1].",
			`"greeting": "Hello Ada"`,
			"Files in ./definition: 2",
		},
		after: map[int]string{4: "test -s default.db\n"},
	})
}

// TestGuideToBucket keeps the replicas in a folder, where the agent was an hour ago.
func TestGuideToBucket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, bucket, machine := filepath.Join(dir, "data"), filepath.Join(dir, "bucket"), filepath.Join(dir, "machine")
	s := start(t, "--data", data, "--replicate", bucket)
	s.call(t, "POST", "/agents", map[string]any{"name": "shop"}, 201)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	runGuide(t, guide{
		name:  "bucket",
		data:  data,
		flags: []string{"--replicate", bucket},
		replace: map[string]string{
			"s3://my-bucket/satchel?region=eu-central-1": bucket,
			"/srv/satchel":     machine,
			"2026-11-23 10:30": time.Now().Add(time.Minute).Format(time.DateTime),
		},
		prints: []string{"shop", "restored as agent-", "default is in " + machine},
	})
	moved := start(t, "--data", machine)
	if got := moved.call(t, "GET", "/agents/shop", nil, 200); got["status"] != "paused" {
		t.Errorf("on the new machine: %v", got)
	}
}

// issuesOfN8N is a workflow of n8n that reads a list every morning.
const issuesOfN8N = `{"name": "Open issues", "nodes": [
 {"id": "1", "name": "Every morning", "type": "n8n-nodes-base.scheduleTrigger", "typeVersion": 1.2, "position": [0, 0],
  "parameters": {"rule": {"interval": [{"field": "cronExpression", "expression": "0 9 * * *"}]}}},
 {"id": "2", "name": "Issues", "type": "n8n-nodes-base.httpRequest", "typeVersion": 4.2, "position": [220, 0],
  "parameters": {"url": "https://api.github.com/people", "authentication": "predefinedCredentialType", "nodeCredentialType": "githubApi", "options": {}},
  "credentials": {"githubApi": {"id": "7", "name": "GitHub of Ada"}}},
 {"id": "3", "name": "Company", "type": "n8n-nodes-base.set", "typeVersion": 3.4, "position": [440, 0],
  "parameters": {"assignments": {"assignments": [{"id": "a", "name": "company", "value": "={{ $json.company }}", "type": "string"}]}, "options": {}}}],
 "connections": {"Every morning": {"main": [[{"node": "Issues", "type": "main", "index": 0}]]}, "Issues": {"main": [[{"node": "Company", "type": "main", "index": 0}]]}}}`

func TestGuideFromN8N(t *testing.T) {
	t.Parallel()
	out := newFakeServices(t)
	runGuide(t, guide{
		name:  "n8n",
		flags: []string{"--outbound-allow", "127.0.0.1/32"},
		files: map[string]string{"issues.json": strings.ReplaceAll(issuesOfN8N, "https://api.github.com", out.URL)},
		replace: map[string]string{
			`"preset": "github",`: `"preset": "github", "hosts": ["` + out.URL + `"], "config": {"test": {"url": "` +
				out.URL + `/people"}},`,
		},
		prints: []string{
			"GitHub of Ada  githubApi  github",
			"0 9 * * *", "ready", "Analytical Engines", "active", "T09:00:00.000Z",
		},
	})
	if n := out.requested("/people", "ghp_of-a-test"); n != 1 {
		t.Errorf("the list was read %d times with the credential: %q", n, out.calls)
	}
}

func TestGuideToOllama(t *testing.T) {
	t.Parallel()
	out := newFakeServices(t)
	out.set(func() { out.says = "Within two days [1]." })
	runGuide(t, guide{
		name:  "ollama",
		flags: []string{"--outbound-allow", "127.0.0.1/32"},
		replace: map[string]string{
			`"llm_provider": "ollama"`: `"llm_provider": "ollama", "llm_base_url": "` + out.URL + `/model"`,
		},
		prints: []string{"qwen3:4b", `"ok": true`, "Within two days [1]."},
	})
}

func TestGuideToCloudflareAccess(t *testing.T) {
	t.Parallel()
	runGuide(t, guide{
		name:   "cloudflare-access",
		prints: []string{"edge_access_jwks_url = https://example.cloudflareaccess.com/cdn-cgi/access/certs"},
	})
}

func TestGuideToInvoices(t *testing.T) {
	if testing.Short() {
		t.Skip("needs Chromium, and is not about concurrency")
	}
	t.Parallel()
	out := newFakeServices(t)
	runGuide(t, guide{
		name:    "invoices",
		flags:   append(installedBrowser(t), "--outbound-allow", "127.0.0.1/32"),
		replace: map[string]string{"https://portal.example.com": out.URL},
		after: map[int]string{
			1: "satchel api POST browser/$session/takeover/$(satchel api browser/$session --field " +
				"takeover.takeover_id)/complete '{}'\n",
			3: "cat invoice.pdf\n",
		},
		prints: []string{"/live/", `"status": "completed"`, "%PDF-1.4 seven", "closed"},
	})
}

// serviceAccount returns the JSON key of a service account.
func serviceAccount(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(map[string]string{
		"type":           "service_account",
		"client_email":   "sheets@shop.iam.gserviceaccount.com",
		"private_key_id": "1",
		"private_key":    string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})),
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestGuideFromSheetToSlack reads a sheet that has one more row each time.
func TestGuideFromSheetToSlack(t *testing.T) {
	t.Parallel()
	out := newFakeServices(t)
	scope := "https://www.googleapis.com/auth/spreadsheets.readonly"
	runGuide(t, guide{
		name:  "sheet-to-slack",
		flags: []string{"--outbound-allow", "127.0.0.1/32"},
		files: map[string]string{"service-account.json": serviceAccount(t)},
		replace: map[string]string{
			"https://sheets.googleapis.com": out.URL,
			`"preset": "google-service-account",`: `"preset": "google-service-account", "hosts": ["` + out.URL +
				`"], "config": {"grant": "jwt_bearer", "token_url": "` + out.URL + `/token", "scope": "` +
				scope + `"},`,
			`"signingSecret": "$SLACK_SIGNING_SECRET"`: `"signingSecret": "$SLACK_SIGNING_SECRET", "apiBaseUrl": "` +
				out.URL + `"`,
		},
		prints: []string{"ready", "Shop", `"count": 0`, `"count": 1`, ":00.000Z"},
	})
	if n := out.requested("chat.postMessage"); n != 1 ||
		out.requested("chat.postMessage", "New order of Bob: Spelt, 3.90", "xoxb-1") != 1 {
		t.Errorf("%d messages were posted: %q", n, out.calls)
	}
	if out.requested("GET /v4/spreadsheets", "Bearer token-of-the-sheet") != 2 {
		t.Errorf("the sheet was not read with the credential: %q", out.calls)
	}
}
