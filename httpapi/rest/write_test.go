package rest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

// A failure because the client disconnected is not an error of the server.
func TestDisconnectedClientIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		want bool
	}{{ctx, false}, {t.Context(), true}} {
		var text bytes.Buffer
		LogFailure(
			echo.New().NewContext(httptest.NewRequestWithContext(c.ctx, "GET", "/", nil), httptest.NewRecorder()),
			fmt.Errorf("read: %w", context.Canceled),
			slog.New(slog.NewTextHandler(&text, nil)),
		)
		if got := strings.Contains(text.String(), "level=ERROR"); got != c.want {
			t.Errorf("logged: %q", text.String())
		}
	}
}
