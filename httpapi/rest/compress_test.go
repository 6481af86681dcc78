package rest

import (
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"
)

// A handler that responds after another wrote nothing is not cut off.
func TestCompressAfterNothingWasWritten(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set(echo.HeaderAcceptEncoding, "gzip")
	w := httptest.NewRecorder()
	c := echo.New().NewContext(r, w)
	Compress(c)()
	end := Compress(c)
	if err := c.JSON(503, map[string]string{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	end()
	if w.Code != 503 || w.Body.String() != "{\"a\":\"b\"}\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}
