// Package testdata has the ways to read a request's body that handlers must not use.
package testdata

import (
	"io"
	"net/http"

	"github.com/labstack/echo/v4"
)

type kept struct{ request *http.Request }

func byParameter(r *http.Request) { _, _ = io.ReadAll(r.Body) }

func byField(k kept) { _, _ = io.ReadAll(k.request.Body) }

func byContext(c echo.Context) { _, _ = io.ReadAll(c.Request().Body) }

func byVariable(c echo.Context) {
	r := c.Request()
	_, _ = io.ReadAll(r.Body)
}

func byForm(r *http.Request) { _ = r.ParseForm() }

func byValue(c echo.Context) string { return c.FormValue("name") }
