package registry

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"satchel/agent"
	"satchel/agent/mcp"
	"satchel/store"
)

// roleVariable makes the test binary run as a server program, with a tool that returns
// an environment variable.
const roleVariable = "TEST_PROGRAM"

func init() {
	if os.Getenv(roleVariable) == "" {
		return
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "program", Version: "1"}, nil)
	s.AddTool(
		&sdk.Tool{Name: "token", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{
				Content: []sdk.Content{&sdk.TextContent{Text: fingerprint(os.Getenv("VAULT_TOKEN"))}},
			}, nil
		},
	)
	_ = s.Run(context.Background(), &sdk.StdioTransport{})
	os.Exit(0)
}

// TestPrograms: a server runs as a program by the name of one of the operator's
// commands, with a credential of type env. The API and SQL cannot change anything else
// about the program.
func TestPrograms(t *testing.T) {
	path := t.TempDir()
	folder, _ := openIdle(t, path)
	db := folder.Default()
	if _, err := db.CreateCredential(
		t.Context(),
		agent.Credential{Name: "vault-env", Type: agent.CredentialEnv, Hosts: []string{}},
		map[string]string{"VAULT_TOKEN": "swordfish"},
	); err != nil {
		t.Fatal(err)
	}
	commands := map[string]mcp.Command{
		"vault": {Command: os.Args[0], Args: []string{"-test.run=^$"}, Env: map[string]string{roleVariable: "server"}},
	}
	home := filepath.Join(path, "mcp")
	env := func(_ context.Context, _ *store.DB, ref string) (map[string]string, error) {
		if ref != "vault-env" {
			return nil, agent.Invalid("credential", "must be of type env")
		}
		return map[string]string{"VAULT_TOKEN": "swordfish"}, nil
	}
	r := New(Options{
		Env:       store.Env{Folder: folder, Version: "test", Log: quiet},
		Variables: env,
		Programs:  mcp.NewPrograms(mcp.ProgramOptions{Commands: commands, Folder: home}),
	})
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	for field, refused := range map[string]agent.MCPServer{
		"command":    {Name: "Shell", Command: "/bin/sh -c id"},
		"url":        {Name: "Both", Command: "vault", URL: "https://mcp.example.com"},
		"credential": {Name: "Header", Command: "vault", Credential: "a-header"},
	} {
		if _, err := r.Create(
			t.Context(),
			db,
			refused,
			agent.MCPAuth{},
		); agent.ErrorCode(err) != agent.CodeValidation ||
			!strings.Contains(agent.Explain(err), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := r.Create(
		t.Context(),
		db,
		agent.MCPServer{Name: "Token", Command: "vault"},
		bearer,
	); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("with a token: %v", err)
	}
	s, err := r.Create(
		t.Context(),
		db,
		agent.MCPServer{Name: "Vault", Command: "vault", Credential: "vault-env"},
		agent.MCPAuth{},
	)
	if err != nil || s.Status != agent.MCPConnected || s.Command != "vault" || s.URL != "" {
		t.Fatalf("got %+v, %v", s, err)
	}
	token := func() (any, error) { return r.Call(t.Context(), db, s.ID, "token", nil) }
	if got, err := token(); err != nil || got != fingerprint("swordfish") {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := r.Update(t.Context(), db, s.ID, agent.MCPServerChange{
		Command: agent.Some("other"),
	}); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("another command: %v", err)
	}
	if now, err := r.Update(t.Context(), db, s.ID, agent.MCPServerChange{
		Name:       agent.Some("Safe"),
		Credential: agent.Some(""),
	}); err != nil || now.Status != agent.MCPConnected {
		t.Errorf("without its credential: %+v, %v", now, err)
	}
	if got, err := token(); err != nil || got != fingerprint("") {
		t.Errorf("without its credential: %v, %v", got, err)
	}
	sql := func(command string) {
		t.Helper()
		if _, err := db.SQL(
			t.Context(),
			"UPDATE mcp_servers SET command = '"+command+"'",
			store.Params{},
			store.Access{Write: true},
		); err != nil {
			t.Fatal(err)
		}
	}
	sql("/bin/echo hello")
	if _, err := token(); mcp.StatusOf(err) != agent.MCPDisconnected ||
		!strings.Contains(agent.Explain(err), "has no command") {
		t.Errorf("a command by SQL: %v", err)
	}
	sql("vault")
	if _, err := os.Stat(filepath.Join(home, db.ID(), s.ID)); err != nil {
		t.Error(err)
	}
	if err := r.Delete(t.Context(), db, s.ID); err != nil {
		t.Fatal(err)
	}
	r.Stop()
	if _, err := os.Stat(filepath.Join(home, db.ID(), s.ID)); !os.IsNotExist(err) {
		t.Errorf("the folder of a deleted server: %v", err)
	}
}
