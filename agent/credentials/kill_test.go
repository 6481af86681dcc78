package credentials

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// TestMain is also the entry point of the process that is killed.
func TestMain(m *testing.M) {
	if folder := os.Getenv("CREDENTIALS_CHILD"); folder != "" {
		renewForever(folder)
	}
	os.Exit(m.Run())
}

func open(folder string) (*store.Folder, *Credentials, error) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	f, err := store.Open(store.Options{Path: folder, Log: quiet})
	if err != nil {
		return nil, nil, err
	}
	return f, New(Options{
		Env:     store.Env{Folder: f, Allow: agent.MustAddressRanges("127.0.0.0/8"), Log: quiet},
		Address: "http://localhost",
	}), nil
}

// renewForever requests tokens one after the other. Each expires immediately.
func renewForever(folder string) {
	f, c, err := open(folder)
	if err != nil {
		os.Exit(2)
	}
	for {
		token, err := c.token(store.Background(context.Background()), f.Default(), "google", "")
		if err != nil {
			os.Exit(3)
		}
		_, _ = os.Stdout.WriteString(token + "\n")
	}
}

// TestKillWhileRenewing kills the program while it renews rotating tokens. The stored
// access token is the one that was used last, and its refresh token is not lost.
func TestKillWhileRenewing(t *testing.T) {
	var mu sync.Mutex
	issued := 0
	pending := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		mu.Lock()
		issued++
		n := issued
		mu.Unlock()
		if n%7 == 0 { // the program is killed here, before it receives a response
			select {
			case pending <- struct{}{}:
			default:
			}
			<-r.Context().Done()
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"access_token":  r.PostForm.Get("refresh_token") + "-a",
			"refresh_token": "r" + r.PostForm.Get("refresh_token"),
			"token_type":    "bearer",
			"expires_in":    1,
		})
	}))
	t.Cleanup(server.Close)
	folder := filepath.Join(t.TempDir(), "data")
	f, _, err := open(folder)
	if err != nil {
		t.Fatal(err)
	}
	made, err := f.Default().CreateCredential(t.Context(), agent.Credential{
		Name:  "google",
		Type:  agent.CredentialOAuth2,
		Hosts: []string{server.URL},
		Config: agent.CredentialConfig{
			Grant:    agent.GrantCode,
			AuthURL:  server.URL,
			TokenURL: server.URL,
			ClientID: "client",
		},
	}, map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := f.Default().OpenCredential(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Default().PutTokens(t.Context(), o, agent.CredentialTokens{RefreshToken: "r"}, ""); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "CREDENTIALS_CHILD="+folder)
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		<-pending
		_ = child.Process.Kill()
		output, _ := io.ReadAll(out)
		_ = child.Wait()
		f, _, err := open(folder)
		if err != nil {
			t.Fatal(err)
		}
		o, err := f.Default().OpenCredential(t.Context(), made.ID)
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for _, b := range output {
			if b == '\n' {
				lines++
			}
		}
		if lines == 0 ||
			o.Tokens.AccessToken+"\n" != string(output[lastLine(output):]) ||
			"r"+o.Tokens.AccessToken != o.Tokens.RefreshToken+"-a" {
			t.Errorf("after the kill the tokens are %+v, the last used was %s", o.Tokens, output[lastLine(output):])
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func lastLine(text []byte) int {
	for i := len(text) - 2; i >= 0; i-- {
		if text[i] == '\n' {
			return i + 1
		}
	}
	return 0
}
